// Command roced-device-plugin gives containers of a Kubernetes node sockets of roced's service, as roced.dev/verbs.
package main
