// SPDX-License-Identifier: Apache-2.0

// Package unit returns advice on the service's process: systemctl if systemd manages it, otherwise the
// process itself.
//
// It reads the file system at each call and is meant for errors. It has no state.
package unit
