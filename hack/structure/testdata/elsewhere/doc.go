// SPDX-License-Identifier: Apache-2.0

// Command elsewhere is a program on the network in memory, which has to compile on other systems than Linux too:
// make cross.
package main
