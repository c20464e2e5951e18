// SPDX-License-Identifier: Apache-2.0

// Package job runs a function in the background that writes text, such as a program on the host or a script in a
// virtual machine. A test can wait for its output.
package job
