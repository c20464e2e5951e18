// SPDX-License-Identifier: Apache-2.0

// Package kernel reports the release of the running kernel. It adds the cause and the remedy to errors of
// kernels that are too old or lack a module.
package kernel
