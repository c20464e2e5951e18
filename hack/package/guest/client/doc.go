// SPDX-License-Identifier: Apache-2.0

// Command client is a program of the service in the test of packages: it opens a device, and sends
// itself messages through it. It prints the received ones, or fails.
package main
