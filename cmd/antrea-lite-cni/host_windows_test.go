package main

import "os"

// sandbox is an HNS namespace; only the agent can look it up.
const sandbox = "4c3d2e1f-0a9b-4c8d-9e7f-001122334455"

const noSocket = "no socket"

// stops is empty: Windows has no signals, a plugin is ended by its runtime.
func stops() []os.Signal { return nil }

// away is empty: a pipe goes with its process.
func away() []absence { return nil }

func badNetNS() []badInput { return nil }
