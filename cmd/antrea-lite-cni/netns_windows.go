package main

// checkNetNS accepts everything: on Windows CNI_NETNS is the id of an HNS
// namespace, "none" or "container:ID", and only the agent can look it up.
func checkNetNS(string) error { return nil }
