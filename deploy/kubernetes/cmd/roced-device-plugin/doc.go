// SPDX-License-Identifier: Apache-2.0

// Command roced-device-plugin gives containers of a Kubernetes node sockets of roced's service, as roced.dev/verbs.
package main
