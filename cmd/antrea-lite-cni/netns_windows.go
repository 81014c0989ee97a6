package main

import "strings"

// checkNetNS accepts everything: on Windows CNI_NETNS is the id of an HNS
// namespace, "none" or "container:ID", and only the agent can look it up.
func checkNetNS(string) error { return nil }

// sharesNetwork tells that the container has the network of another, for which
// addresses are given already.
func sharesNetwork(netns string) bool { return strings.HasPrefix(netns, "container:") }
