// Package job runs something in the background that writes text, such as a program on
// the host or a script in a virtual machine, and lets a test wait for what it says.
package job
