package ofclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// missSendLen is what SET_CONFIG asks for when SET_ASYNC is refused. Open
// vSwitch sends a management connection no PORT_STATUS before either of them,
// and any number but 0 will do.
const missSendLen = 128

// errVersion is what a bridge without OpenFlow 1.5 leads to.
func errVersion(detail string) error {
	return fmt.Errorf("the switch refuses OpenFlow 1.5 (%s): add OpenFlow15 to the bridge's protocols column, "+
		"as in: ovs-vsctl add bridge BRIDGE protocols OpenFlow15", detail)
}

// handshake brings the connection to the point where it carries requests and
// PORT_STATUS: hello, features, subscription.
func (c *Conn) handshake(ctx context.Context) error {
	frame, err := ofp.Append(nil, 0, &ofp.Hello{Versions: []uint8{ofp.Version}})
	if err != nil {
		return err
	}
	if err := c.send(ctx, &write{frames: frame}); err != nil {
		return err
	}
	timeout := time.NewTimer(c.cfg.DialTimeout)
	defer timeout.Stop()
	select {
	case <-c.hello:
	case <-timeout.C:
		return fmt.Errorf("the switch sent no hello within %v", c.cfg.DialTimeout)
	case <-c.done:
		return c.cause()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err = c.query(ctx, &ofp.FeaturesRequest{}, func(m ofp.Message) (bool, error) {
		f, ok := m.(*ofp.FeaturesReply)
		if !ok {
			return true, unexpected(m)
		}
		c.datapathID = f.DatapathID
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("ask for the switch's features: %w", err)
	}
	return c.subscribe(ctx)
}

// subscribe asks for PORT_STATUS and nothing else. A switch that refuses
// SET_ASYNC gets SET_CONFIG, which brings packets too; the reader drops them.
func (c *Conn) subscribe(ctx context.Context) error {
	err := c.Send(ctx, ofp.PortStatusOnly())
	if _, refused := errors.AsType[*ofp.Error](err); refused {
		c.logger.V(1).Info("The switch refuses SET_ASYNC, SET_CONFIG is used instead", "reason", err.Error())
		err = c.Send(ctx, &ofp.SetConfig{MissSendLen: missSendLen})
	}
	if err != nil {
		return fmt.Errorf("subscribe to PORT_STATUS: %w", err)
	}
	return nil
}

// negotiate judges the first message of the switch.
func negotiate(m ofp.Message, bad error) error {
	if bad != nil {
		return fmt.Errorf("the first message of the switch: %w", bad)
	}
	switch m := m.(type) {
	case *ofp.Hello:
		if m.Supports(ofp.Version) {
			return nil
		}
		names := make([]string, len(m.Versions))
		for i, v := range m.Versions {
			names[i] = versionName(v)
		}
		return errVersion("it offers " + strings.Join(names, ", "))
	case *ofp.Error:
		return errVersion(m.Error())
	}
	return fmt.Errorf("the first message of the switch is %s", m.Type())
}

func versionName(v uint8) string {
	if v >= 1 && v <= 6 {
		return fmt.Sprintf("1.%d", v-1)
	}
	return fmt.Sprintf("wire version %d", v)
}
