package vswitch

import (
	"bytes"
	"encoding/json"
)

// rpcError is an error object or string that the server gave in place of a result.
type rpcError struct{ method, text string }

func (e *rpcError) Error() string { return e.method + ": " + e.text }

type message struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// errorText reads an error, which ovsdb-server gives as a string or as an
// object with "error" and "details".
func errorText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var o struct{ Error, Details string }
	if json.Unmarshal(raw, &o) == nil && o.Error != "" {
		if o.Details != "" {
			return o.Error + ": " + o.Details
		}
		return o.Error
	}
	return string(raw)
}

func null(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
