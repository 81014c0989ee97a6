package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tasks is where containerd keeps what it knows of running containers.
const tasks = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"

// sandbox is the id of a Pod's running sandbox.
func (n *Node) sandbox(ctx context.Context, uid string) (string, error) {
	out, err := n.ctr(ctx, "containers", "list", "--quiet", `labels."io.kubernetes.pod.uid"==`+uid+`,labels."io.cri-containerd.kind"==sandbox`)
	if err != nil {
		return "", err
	}
	// Sandboxes of before a reboot are known still, but do not run.
	ids := slices.DeleteFunc(strings.Fields(out), func(id string) bool {
		_, err := os.Stat(n.Root(filepath.Join(tasks, id)))
		return err != nil
	})
	if len(ids) != 1 {
		return "", fmt.Errorf("the Pod %s has the running sandboxes %q on %s", uid, ids, n.Name)
	}
	return ids[0], nil
}

// KillSandbox ends the process that holds a Pod's namespaces: the kubelet makes a
// new sandbox for the Pod, with what it knows.
func (n *Node) KillSandbox(ctx context.Context, uid string) error {
	id, err := n.sandbox(ctx, uid)
	if err != nil {
		return err
	}
	_, err = n.ctr(ctx, "tasks", "kill", "--signal", "SIGKILL", id)
	return err
}

// PodNetNS is the path of the network namespace of a Pod on this node, for the
// instruments of package lab.
func (n *Node) PodNetNS(ctx context.Context, uid string) (string, error) {
	id, err := n.sandbox(ctx, uid)
	if err != nil {
		return "", err
	}
	raw, err := n.ctr(ctx, "containers", "info", id)
	if err != nil {
		return "", err
	}
	var info struct {
		Spec struct {
			Linux struct {
				Namespaces []struct{ Type, Path string }
			}
		}
	}
	if err := json.Unmarshal([]byte(raw), &info); err != nil {
		return "", err
	}
	for _, ns := range info.Spec.Linux.Namespaces {
		if ns.Type == "network" {
			// Not by the path itself: /var/run is a link to /run, which would be this
			// process's own.
			return n.Root(filepath.Join("/run/netns", filepath.Base(ns.Path))), nil
		}
	}
	return "", fmt.Errorf("sandbox %s has no network namespace", id)
}
