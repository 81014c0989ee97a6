package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// askFirst is how long an API server may keep the agent waiting when there is a
// copy of the Node to go on with.
const askFirst = 5 * time.Second

// OwnNode returns this machine's Node as WaitNode does. A copy at path, which
// should die with the boot as Pods do, stands in for an API server that is away:
// the ranges of a Node never change in its life, and Pods that run on it have to
// be served after a restart of the agent.
func OwnNode(ctx context.Context, client kubernetes.Interface, name, path string, say func(error)) (Node, error) {
	cached, err := load(path, name)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, askFirst)
		node, err := getNode(limited, client, name)
		cancel()
		if err != nil {
			klog.FromContext(ctx).Info("The API server is away; going on with what it said before", "node", name, "podCIDRs", cached.PodCIDRs, "err", err)
			return cached, nil
		}
		return node, save(path, node)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		klog.FromContext(ctx).Info("The copy of the Node is not usable; asking the API server", "path", path, "err", err)
	}
	node, err := WaitNode(ctx, client, name, say)
	if err != nil {
		return node, err
	}
	return node, save(path, node)
}

func load(path, name string) (Node, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Node{}, err
	}
	var node Node
	if err := json.Unmarshal(b, &node); err != nil {
		return Node{}, err
	}
	if node.Name != name || len(node.PodCIDRs) == 0 {
		return Node{}, fmt.Errorf("it is of Node %q with ranges %v", node.Name, node.PodCIDRs)
	}
	return node, nil
}

func save(path string, node Node) error {
	if err := write(path, node); err != nil {
		return fmt.Errorf("keep a copy of Node %s: %w", node.Name, err)
	}
	return nil
}

// SavePeers keeps a copy of the other nodes, for LoadPeers in the next process.
func SavePeers(path string, nodes []Node) error {
	if err := write(path, nodes); err != nil {
		return fmt.Errorf("keep a copy of the other Nodes: %w", err)
	}
	return nil
}

// LoadPeers returns the nodes of the copy: what to start with, since a list of the
// API server takes a moment, or for ever while it is away. No copy: none.
func LoadPeers(path string) (nodes []Node, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &nodes)
	}
	if err != nil {
		return nil, fmt.Errorf("the copy of the other Nodes: %w", err)
	}
	return nodes, nil
}

// write replaces a file by v in JSON; nobody ever sees half of it.
func write(path string, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		temp := path + ".tmp"
		if err = os.WriteFile(temp, b, 0o644); err == nil {
			err = os.Rename(temp, path)
		}
	}
	return err
}
