package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/antrea-lite/podnet/backend/windows"
)

// extensionID is the filter driver of Open vSwitch (ovsext.inf).
const extensionID = "583CC151-73EC-4A6A-8B47-578297AD7623"

// ErrNoExtension: Open vSwitch's driver is not installed, so that no switch offers its extension.
var ErrNoExtension = errors.New("the switch offers no Open vSwitch extension")

// Caller makes a request of HNS' first interface, the only one that knows the
// extensions of a switch. method and path are HTTP's; the answer is its JSON
// document. HNS calls cannot be cancelled; implementations may ignore ctx.
type Caller interface {
	Call(ctx context.Context, method, path, body string) ([]byte, error)
}

// Extension is Open vSwitch's extension in the switch of an HNS network.
type Extension struct{ Caller Caller }

type v1Extension struct {
	ID        string `json:"Id"`
	IsEnabled bool
}

// Enabled tells whether the extension is enabled. ErrNoExtension: there is none.
func (e Extension) Enabled(ctx context.Context, network windows.GUID) (bool, error) {
	var n struct{ Extensions []v1Extension }
	if err := e.call(ctx, "GET", network, "", &n); err != nil {
		return false, err
	}
	for _, x := range n.Extensions {
		if strings.EqualFold(strings.Trim(x.ID, "{}"), extensionID) {
			return x.IsEnabled, nil
		}
	}
	return false, fmt.Errorf("%w: install Open vSwitch for Windows with its driver", ErrNoExtension)
}

// Enable enables the extension. From then on Open vSwitch alone forwards on this
// switch, the host's own traffic included.
func (e Extension) Enable(ctx context.Context, network windows.GUID) error {
	body, err := json.Marshal(struct{ Extensions []v1Extension }{[]v1Extension{{extensionID, true}}})
	if err != nil {
		return err
	}
	return e.call(ctx, "POST", network, string(body), nil)
}

func (e Extension) call(ctx context.Context, method string, network windows.GUID, body string, output any) error {
	// HNS compares ids of paths in upper case.
	path := "/networks/" + strings.ToUpper(network.String())
	fail := func(err error) error { return fmt.Errorf("HNS %s %s: %w", method, path, err) }
	answer, err := e.Caller.Call(ctx, method, path, body)
	if err != nil {
		return fail(err)
	}
	var r struct {
		Success bool
		Error   string
		Output  json.RawMessage
	}
	switch err := json.Unmarshal(answer, &r); {
	case err != nil:
		return fail(err)
	case !r.Success:
		return fail(errors.New(strings.TrimSpace(r.Error)))
	case output == nil:
		return nil
	}
	if err := json.Unmarshal(r.Output, output); err != nil {
		return fail(err)
	}
	return nil
}
