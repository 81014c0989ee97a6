// Package winservice makes a program a Windows service, and runs it as one.
package winservice
