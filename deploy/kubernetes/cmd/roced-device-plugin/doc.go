// SPDX-License-Identifier: Apache-2.0

// Command roced-device-plugin provides sockets of roced's service to containers of a Kubernetes node, as the resource
// roced.dev/verbs.
package main
