// Package upstream runs Kubernetes' own sig-network end-to-end tests against a
// cluster and tells how they went. The tests are compiled by package build.
package upstream
