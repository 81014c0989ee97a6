// Package workload makes the Pods that scenarios and measurements run, and
// times how long they take to be Ready.
package workload
