// SPDX-License-Identifier: Apache-2.0

// Command client is a client of the service in the test of packages. It opens a device of the service, and sends
// messages to itself. It prints the number of received messages, or fails.
package main
