package main

import (
	"cmp"
	"os"
	"strings"
	"time"
)

// utc is the name of the default time zone.
const utc = "UTC"

// localtime is the path of a link to the file of the machine's time zone.
const localtime = "/etc/localtime"

// machineZone returns the name of this machine's time zone. It reads the environment variable TZ. If TZ is not set, it
// reads the target of the link localtime. If the result is not a valid name, for example in a container, it returns UTC.
func machineZone(localtime string) string {
	zone, set := os.LookupEnv("TZ")
	if !set {
		zone, _ = os.Readlink(localtime) // zone is empty if there is no link
	}
	zone = strings.TrimPrefix(zone, ":")
	if _, name, inFolder := strings.Cut(zone, "zoneinfo/"); inFolder {
		zone = name
	}
	zone = strings.TrimPrefix(zone, "posix/")
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" || zone == "Etc/"+utc {
		return utc
	}
	return cmp.Or(zone, utc)
}
