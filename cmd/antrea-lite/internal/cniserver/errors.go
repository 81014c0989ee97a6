package cniserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/ipam"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/podnet"
)

// class is the code and the remedy of a kind of error.
type class struct {
	code   uint
	remedy string
}

// wireError words an error for the caller: which Pod, container and step, after
// what time, the cause, and what to do.
func wireError(verb string, req *cniapi.Request, took time.Duration, err error) *cniapi.Error {
	var own *cniapi.Error
	if errors.As(err, &own) {
		return own
	}
	c := classify(err)
	if verb == "CHECK" && c.code != cniapi.CodeTryAgain && c.code != cniapi.CodeUnknown {
		c = class{cniapi.CodeCheck, "the runtime may send DEL and ADD to make it new"}
	}
	var op *podnet.OpError
	if errors.As(err, &op) {
		return &cniapi.Error{Code: c.code, Msg: err.Error(), Details: c.remedy} // it says all of it
	}
	who := fmt.Sprintf("container %s interface %s", req.ContainerID, req.IfName)
	if req.Pod.Name != "" {
		who = fmt.Sprintf("Pod %s/%s, %s", req.Pod.Namespace, req.Pod.Name, who)
	}
	if verb == "GC" {
		who = "network " + req.Network
	}
	return &cniapi.Error{Code: c.code, Msg: fmt.Sprintf("%s of %s after %s: %v", verb, who, took.Round(time.Millisecond), err), Details: c.remedy}
}

// classify maps causes to CNI codes. The first that fits counts: a wait that
// ended because the switch is away is "try again" however it is wrapped.
func classify(err error) class {
	var port *podnet.PortError
	switch {
	case errors.Is(err, podnet.ErrNotFound):
		return class{cniapi.CodeUnknown, "send ADD first; `antrea-lite ports` lists what the agent knows"}
	case errors.Is(err, ipam.ErrNoAddress):
		return class{cniapi.CodeAddress, "`antrea-lite status` shows how full the ranges are"}
	case errors.Is(err, podnet.ErrOvertaken):
		return class{cniapi.CodePodIsOther, "nothing is left of it; a newer call counts, or the Pod is gone"}
	case errors.Is(err, podnet.ErrBadRequest):
		return class{cniapi.CodeConfig, "correct the network configuration or what the runtime passes"}
	case errors.Is(err, podnet.ErrNoDevice):
		return class{cniapi.CodeInterface, "make the host device before the container, or let the agent run with portReadiness: async"}
	case errors.Is(err, podnet.ErrPortExists):
		return class{cniapi.CodeInterface, "remove what has the name, or use another hostPrefix in the agent's configuration"}
	case errors.As(err, &port):
		return class{cniapi.CodePort, "`antrea-lite check` and ovs-vswitchd's log tell more; nothing is left of the call"}
	case errors.Is(err, podnet.ErrTryAgain), errors.Is(err, podnet.ErrNotConnected), errors.Is(err, podnet.ErrOutcomeUnknown),
		errors.Is(err, podnet.ErrNoNumber), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, errClientGone):
		return class{cniapi.CodeTryAgain, "the call may be repeated; `antrea-lite status` shows what the agent waits for"}
	}
	return class{cniapi.CodeFailed, "`antrea-lite check` and the agent's log tell more"}
}
