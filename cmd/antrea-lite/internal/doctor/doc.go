// Package doctor looks for what is wrong on a node. It changes nothing and works
// without a running agent.
package doctor
