// SPDX-License-Identifier: Apache-2.0

// Command roced-dra is the driver of roced.dev for dynamic resource allocation: it gives each claim of a Kubernetes node
// a socket of roced's service.
package main
