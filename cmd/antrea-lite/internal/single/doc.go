// Package single lets one agent run for each bridge. Two of them would take each
// other's flows for stale and delete them.
package single
