package main

import (
	"cmp"
	"os"
	"strings"
	"time"
)

// utc is the default time zone.
const utc = "UTC"

// localtime is the path of a link to the file of the machine's time zone.
const localtime = "/etc/localtime"

// machineZone returns the name of this machine's time zone: from TZ or, if TZ is not set, from the target of localtime. It
// returns UTC if this is not the name of a time zone, for example in a container.
func machineZone(localtime string) string {
	zone, set := os.LookupEnv("TZ")
	if !set {
		zone, _ = os.Readlink(localtime) // empty if there is no link
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
