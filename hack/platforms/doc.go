// Platforms boots a virtual machine of another kernel or processor and runs a shell script in it:
//
//	go run ./hack/platforms -kernel arm64-stable -share DIR -script 'uname -a; /host/roced demo'
package main
