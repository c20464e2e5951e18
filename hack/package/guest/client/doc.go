// Command client is a program of the service's in the test of packages: it opens a device, and sends
// itself messages through it. It says what it got, or fails.
package main
