// Package podnet plugs containers into Open vSwitch.
package podnet
