// SPDX-License-Identifier: Apache-2.0

// Command roced-dra is the driver of roced.dev for dynamic resource allocation. It provides a socket of roced's service
// to each claim of a Kubernetes node.
package main
