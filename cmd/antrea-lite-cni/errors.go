package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// wire turns the agent's error into CNI's.
func wire(err error) error {
	if err == nil {
		return nil
	}
	var e *cniapi.Error
	if errors.As(err, &e) {
		return types.NewError(e.Code, e.Msg, e.Details)
	}
	return types.NewError(cniapi.CodeFailed, err.Error(), "")
}

// explain adds values and the remedy to the errors that skel makes.
func explain(e *types.Error) *types.Error {
	out := *e
	switch {
	case e.Code == cniapi.CodeVersion, e.Code == cniapi.CodeDecoding && strings.Contains(e.Msg, "version part"):
		out.Code = cniapi.CodeVersion
		out.Msg = "the CNI version is not supported: " + e.Msg
		if e.Details != "" {
			out.Msg = "the CNI version is not supported: " + e.Details + " (a missing cniVersion means 0.1.0)"
		}
		out.Details = "set cniVersion in the network configuration to one of " + strings.Join(supported(), ", ") +
			"; CHECK needs 0.4.0 or later, GC and STATUS need 1.1.0"
	case e.Details != "" && e.Code != cniapi.CodeEnvironment:
	case strings.Contains(e.Msg, "containerID"):
		out.Msg = fmt.Sprintf("CNI_CONTAINERID %q: %s", os.Getenv("CNI_CONTAINERID"), e.Msg)
		out.Details = "it starts with a letter or digit, followed by letters, digits, '.', '_' and '-'"
	case strings.Contains(e.Msg, "interface name"):
		out.Msg = fmt.Sprintf("CNI_IFNAME %q: %s", os.Getenv("CNI_IFNAME"), e.Msg)
		out.Details = "a Linux interface name has 1 to 15 characters without '/', ':' and blanks"
	case strings.HasPrefix(e.Msg, "required env variables"):
		out.Details = "the container runtime has to set them for " + os.Getenv("CNI_COMMAND")
	case strings.HasPrefix(e.Msg, "unknown CNI_COMMAND"):
		out.Details = "use ADD, CHECK, DEL, GC, STATUS or VERSION"
	case strings.Contains(e.Msg, "network name"):
		out.Details = "the network configuration needs a \"name\" that starts with a letter or digit, followed by letters, digits, '.', '_' and '-'"
	case e.Code == cniapi.CodeDecoding:
		out.Msg = "the network configuration on stdin is not usable: " + e.Msg
		out.Details = "correct the file in the CNI configuration directory"
	case strings.Contains(e.Msg, "should not be the same"):
		out.Msg = fmt.Sprintf("CNI_NETNS %q is the network namespace of the host", os.Getenv("CNI_NETNS"))
		out.Details = "name the container's own"
	}
	return &out
}

// printError writes the error as the CNI specification has it. An empty
// version, when the request's is not known, becomes the newest.
func printError(w io.Writer, version string, e *types.Error) error {
	if version == "" {
		version = supported()[len(supported())-1]
	}
	b, err := json.MarshalIndent(struct {
		CNIVersion string `json:"cniVersion"`
		*types.Error
	}{version, e}, "", "    ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
