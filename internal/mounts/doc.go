// SPDX-License-Identifier: Apache-2.0

// Package mounts isolates a new mount namespace from the namespace that it was copied from
// (mount_namespaces(7)).
package mounts
