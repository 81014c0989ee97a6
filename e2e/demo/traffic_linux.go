package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

const (
	// replyTime is how long a reply that must come may take.
	replyTime = 2 * time.Second
	// silence is how long one that must not come is waited for.
	silence = 400 * time.Millisecond
	// load is what a transfer carries.
	load = 8 << 20
)

func (s *story) talk(ctx context.Context, _ options) error {
	s.title("3  Talk: ping and checksummed TCP, Pod to Pod and Pod to gateway")
	web, shop := s.pod("web"), s.pod("shop")
	gateway4 := lab.Endpoint{Addr: web.Gateway(false)}
	for _, p := range []struct {
		what     string
		from, to lab.Endpoint
		tcp      bool
	}{
		{"web -> shop", web.At(false), shop.At(false), true},
		{"web -> shop over IPv6", web.At(true), shop.At(true), true},
		{"web -> gateway", web.At(false), gateway4, true},
		{"gateway -> web", gateway4, web.At(false), false},
		{"blue-1 -> blue-2 (both VLAN 10)", s.pod("blue-1").At(false), s.pod("blue-2").At(false), true},
	} {
		rtt, err := lab.Ping(p.from.NS, p.from.Addr, p.to.Addr, 56, replyTime)
		if err != nil {
			return fmt.Errorf("%s: %w", p.what, err)
		}
		if !p.tcp {
			s.ok("%s: ping %s", p.what, short(rtt))
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		sent, err := lab.SendTCP(limited, p.from, p.to, load)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", p.what, err)
		}
		s.ok("%s: ping %s; TCP %d MiB at %.0f Mbit/s, sha256 %.12s at both ends", p.what, short(rtt), sent.Bytes>>20, sent.MbitPerSecond(), sent.SHA256)
	}
	return nil
}

func (s *story) apart(context.Context, options) error {
	s.title("4  Apart: other VLANs are other networks")
	for _, pair := range [][2]string{{"blue-1", "red"}, {"blue-1", "web"}, {"web", "red"}} {
		a, b := s.pod(pair[0]), s.pod(pair[1])
		for _, v6 := range []bool{false, true} {
			_, err := lab.Ping(a.NetNS, a.Addr(v6), b.Addr(v6), 56, silence)
			switch {
			case err == nil:
				return fmt.Errorf("%s reached %s", a.Name, b.Name)
			case !errors.Is(err, lab.ErrNoReply):
				return err
			}
		}
		s.ok("%s (VLAN %d) does not reach %s (VLAN %d)", a.Name, a.vlan, b.Name, b.vlan)
	}
	return nil
}

// spoof lets a Pod lie about its address: an honest packet passes, the lie does not.
func (s *story) spoof(context.Context, options) error {
	s.title("5  A liar: web sends packets in another's name to shop")
	web, shop, database := s.pod("web"), s.pod("shop"), s.pod("database")
	webMAC, err := web.MAC()
	if err != nil {
		return err
	}
	shopMAC, err := shop.MAC()
	if err != nil {
		return err
	}
	out, err := lab.OpenWire(web.NetNS, web.IfName)
	if err != nil {
		return err
	}
	defer out.Close()
	in, err := lab.OpenWire(shop.NetNS, shop.IfName)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, p := range []struct {
		what   string
		mac    lab.MAC
		src    netip.Addr
		passes bool
	}{
		{"its own MAC and address", webMAC, web.Addr(false), true},
		{"the address of database", webMAC, database.Addr(false), false},
		{"the address of the gateway", webMAC, web.Gateway(false), false},
		{"another MAC", lab.MAC{2, 0, 0, 0xba, 0xd0, 1}, web.Addr(false), false},
	} {
		text := []byte("sent with " + p.what)
		datagram := lab.UDP(netip.AddrPortFrom(p.src, 4000), netip.AddrPortFrom(shop.Addr(false), 4000), text)
		if err := out.Send(lab.Ethernet(shopMAC, p.mac, lab.EthIPv4, datagram)); err != nil {
			return err
		}
		wait := silence
		if p.passes {
			wait = replyTime
		}
		_, err := in.Wait(time.Now().Add(wait), func(f []byte) bool { return bytes.Contains(f, text) })
		switch {
		case err == nil && p.passes:
			s.ok("%s: delivered", p.what)
		case errors.Is(err, os.ErrDeadlineExceeded) && !p.passes:
			s.ok("%s: dropped", p.what)
		case err == nil:
			return fmt.Errorf("a packet with %s was delivered", p.what)
		default:
			return fmt.Errorf("a packet with %s: %w", p.what, err)
		}
	}
	return nil
}

func (s *story) look(ctx context.Context, _ options) error {
	s.title("6  Look: what an operator sees")
	ports, err := s.node.Tool(ctx, "ports")
	if err != nil {
		return err
	}
	s.note("$ antrea-lite ports")
	s.block(ports)
	flows, err := s.node.Tool(ctx, "flows", "demo/web")
	if err != nil {
		return err
	}
	s.note("$ antrea-lite flows demo/web")
	s.note("(link-local flows, cookies and ages are left out here)")
	s.block(readable(flows))
	return nil
}

// readable shortens what `antrea-lite flows` prints: one heading for each
// table, and of every flow the packets, the match and the actions.
func readable(flows string) string {
	var b strings.Builder
	last := ""
	for line := range strings.Lines(flows) {
		table, flow, ok := strings.Cut(strings.TrimSpace(line), ": cookie=")
		if !ok || strings.Contains(flow, "fe80::") {
			continue
		}
		if table != last {
			fmt.Fprintln(&b, table)
			last = table
		}
		match, actions, _ := strings.Cut(flow, " actions=")
		packets := ""
		var kept []string
		for field := range strings.SplitSeq(match, ",") {
			switch name, value, _ := strings.Cut(strings.TrimSpace(field), "="); name {
			case "n_packets":
				packets = value
			case "duration", "table", "n_bytes", "idle_age", "priority":
			default:
				kept = append(kept, strings.TrimSpace(field))
			}
		}
		// The cookie is the first field.
		fmt.Fprintf(&b, "%8s packets  %s -> %s\n", packets, strings.Join(kept[1:], ","), actions)
	}
	return b.String()
}

// restart restarts Open vSwitch under a running ping and waits for traffic to come back.
func (s *story) restart(ctx context.Context, _ options) error {
	s.title("7  Restart Open vSwitch under a running ping (web -> shop, every 20 ms)")
	web, shop := s.pod("web"), s.pod("shop")
	before, err := s.node.Flows()
	if err != nil {
		return err
	}
	pinging, stop := context.WithCancel(ctx)
	defer stop()
	type outcome struct {
		lab.PingReport
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := lab.PingStream(pinging, web.NetNS, web.Addr(false), shop.Addr(false), 20*time.Millisecond)
		done <- outcome{r, err}
	}()
	t := time.Now()
	if err := errors.Join(s.node.Switch.StopVswitchd(), s.node.Switch.StartVswitchd()); err != nil {
		return err
	}
	s.ok("ovs-vswitchd was stopped and started, %s; all its flows were lost", short(time.Since(t)))
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := lab.Until(limited, func() error {
		now, err := s.node.Flows()
		if err == nil {
			if diff := (lab.Listing{"flow": now}).Diff(lab.Listing{"flow": before}); diff != "" {
				err = fmt.Errorf("flows differ:\n%s", diff)
			}
		}
		return err
	}); err != nil {
		return err
	}
	s.ok("the agent put the same %d flows back by itself, %s after the stop", len(before), short(time.Since(t)))
	if err := s.node.WaitReady(ctx); err != nil {
		return err
	}
	for _, m := range s.pods[:3] {
		if _, err := lab.Ping(m.NetNS, m.Addr(false), m.Gateway(false), 56, replyTime); err != nil {
			return fmt.Errorf("%s -> gateway after the restart: %w", m.Name, err)
		}
	}
	// The ping goes on for a moment, to show that it is well again.
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	stop()
	r := <-done
	if r.err != nil {
		return r.err
	}
	s.ok("%d of %d pings were lost, the longest silence was %s", r.Lost, r.Sent, short(r.LongestGap))
	return nil
}
