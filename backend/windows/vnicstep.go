package windows

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// vnicStep is what a port needs before it can get a number.
type vnicStep struct {
	cfg   ReadinessConfig
	seen  *adapters
	here  *async.Appearance
	waits *vnicWaits
}

// prepare implements async.Config.Prepare. Every attempt begins with what is
// true now, whatever an earlier one did.
func (s *vnicStep) prepare(ctx context.Context, keys []podnet.PortKey) []error {
	keys, err := s.lives(ctx, keys)
	if err != nil {
		return slices.Repeat([]error{err}, len(keys))
	}
	errs := s.missing(ctx, keys)
	var present []int // indexes into keys
	for i, err := range errs {
		if err == nil {
			present = append(present, i)
		}
	}
	if len(present) == 0 {
		return errs
	}
	rows, err := s.rows(ctx)
	var attempts sync.WaitGroup
	for _, i := range present {
		if errs[i] = err; err != nil {
			continue
		}
		// At the same time, so that their transactions are joined.
		attempts.Go(func() { errs[i] = s.one(ctx, keys[i], rows[keys[i].Name]) })
	}
	attempts.Wait()
	return errs
}

// lives puts the present life into keys that name none, those of ports that
// were not promised: what is remembered of a port is remembered of one life.
func (s *vnicStep) lives(ctx context.Context, keys []podnet.PortKey) ([]podnet.PortKey, error) {
	if !slices.ContainsFunc(keys, func(key podnet.PortKey) bool { return key.Gen == "" }) {
		return keys, nil
	}
	rows, err := s.rows(ctx)
	if err != nil {
		return keys, err
	}
	keys = slices.Clone(keys)
	for i, key := range keys {
		if key.Gen == "" {
			keys[i].Gen = rows[key.Name].Gen
		}
	}
	return keys, nil
}

// missing returns why the vNICs that are not there are not; nil for the others.
func (s *vnicStep) missing(ctx context.Context, keys []podnet.PortKey) []error {
	aliases := make([]string, len(keys))
	for i, key := range keys {
		aliases[i] = hostif.Alias(key.Name)
	}
	errs := s.here.Check(ctx, aliases)
	told, stale := s.waits.looked(keys, errs)
	if stale {
		s.here.Changed()
		errs = s.here.Check(ctx, aliases)
		told, _ = s.waits.looked(keys, errs)
	}
	for i, text := range told {
		if text != "" {
			errs[i] = fmt.Errorf("%w; %s", errs[i], text)
		}
	}
	return errs
}

func (s *vnicStep) rows(ctx context.Context) (map[string]podnet.Port, error) {
	ports, err := s.cfg.Rows.Ports(ctx)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]podnet.Port, len(ports))
	for _, port := range ports {
		rows[port.Name] = port
	}
	return rows, nil
}

// one is an attempt for one port whose vNIC is there.
func (s *vnicStep) one(ctx context.Context, key podnet.PortKey, row podnet.Port) error {
	if row.Name == "" || row.Gen != key.Gen {
		return fmt.Errorf("port %s: %w: its row has gone", key.Name, podnet.ErrNoPort)
	}
	switch row.Type {
	case "":
		if err := s.waits.resting(key, time.Now()); err != nil {
			return err
		}
		if err := s.late(ctx, row); err != nil {
			return err
		}
		// By Gen: should the port have been deleted meanwhile, nothing is written,
		// not even to its successor.
		if err := s.cfg.Rows.SetType(ctx, key, typeSwitched); err != nil {
			return err
		}
		return s.waits.switched(key, row.OFPort, time.Now())
	case typeSwitched:
		if err := s.waits.settling(key, row.OFPort, time.Now()); err != nil {
			return err
		}
		switch {
		case row.OFPort < 0 || row.Error != "":
			return s.nudge(ctx, key, row)
		case row.OFPort == 0:
			// No error is not success (ovs-issues#125).
			return fmt.Errorf("port %s: %w: Open vSwitch has not opened its host interface", key.Name, podnet.ErrNoNumber)
		}
		s.waits.done(key)
		return nil
	}
	return fmt.Errorf(`port %s: somebody set its type to %q; it must be "" or %q: delete the Pod`, key.Name, row.Type, typeSwitched)
}

// late runs the late steps, in order, until one fails.
func (s *vnicStep) late(ctx context.Context, row podnet.Port) error {
	if len(s.cfg.LateSteps) == 0 {
		return nil
	}
	iface, err := podnet.DecodeExternalIDs(row.ExternalIDs)
	if err != nil {
		return fmt.Errorf("port %s: its external_ids cannot be read: %w", row.Name, err)
	}
	iface.Name, iface.Gen = row.Name, row.Gen
	vnic, err := s.seen.find(hostif.Alias(row.Name))
	if err != nil {
		return err
	}
	for _, step := range s.cfg.LateSteps {
		if err := step.Run(ctx, iface, vnic); err != nil {
			return fmt.Errorf("%s of host interface %s: %w", step.Name, vnic.Alias, err)
		}
	}
	return nil
}
