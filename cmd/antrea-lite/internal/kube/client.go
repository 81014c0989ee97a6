package kube

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// A node starts a hundred Pods at once now and then, each with an event and
	// a condition; client-go's default of 5 requests a second would take a minute.
	queriesPerSecond = 50
	queriesAtOnce    = 100
)

// Connect makes a client for the API server. An empty kubeconfig stands for the
// Pod's own ServiceAccount. Nothing is sent yet.
func Connect(kubeconfig, userAgent string) (kubernetes.Interface, error) {
	var (
		conf *rest.Config
		err  error
	)
	if kubeconfig == "" {
		if conf, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("kubernetes: %w: outside of a Pod name a file with kubernetes.kubeconfig", err)
		}
	} else if conf, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("kubernetes.kubeconfig: %q: %w", kubeconfig, err)
	}
	conf.UserAgent, conf.QPS, conf.Burst = userAgent, queriesPerSecond, queriesAtOnce
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return client, nil
}
