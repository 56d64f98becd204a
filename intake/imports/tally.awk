# Counts pv and newcomers by target, day and tag in a log that bench/generate has made. An address has the tags of
# its first line for that target on that day. The script shares no code with Footfall.
function add(target, name, value) {
	if (value == "") return
	pv[target " " day " " name " " value]++
	if (new) newcomers[target " " day " " name " " value]++
}
function came(target) {
	if ((target, address, day) in seen) return 0
	new = !((target, address) in ever)
	return seen[target, address, day] = ever[target, address] = 1
}
BEGIN {
	FS = "\""
	split("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", names, " ")
	for (i in names) month[names[i]] = sprintf("%02d", i)
	group["www.google.com"] = group["www.google.de"] = "google"
	group["www.bing.com"] = "bing"; group["duckduckgo.com"] = "duckduckgo"; group["t.co"] = "x"
	group["news.ycombinator.com"] = "hacker news"; group["com.google.android.gm"] = "gmail"
	group["l.facebook.com"] = "facebook"; group["old.reddit.com"] = "reddit"; group["chatgpt.com"] = "chatgpt"
}
{
	split($1, head, " "); split($2, asked, " "); split($3, answer, " ")
	if (answer[1] != 200 || asked[2] ~ /\.css$/ || $6 ~ /Googlebot/) next
	site = head[1]; address = head[2]; stamp = head[5]
	day = substr(stamp, 9, 4) month[substr(stamp, 5, 3)] substr(stamp, 2, 2); hour = substr(stamp, 14, 2)

	campaign = ""; source = $4
	sub(/^[a-z-]*:\/\//, "", source); sub(/\/.*/, "", source)
	if (source == "-" || source == site) source = ""
	if (source in group) source = group[source]
	sub(/^www\./, "", source)
	path = asked[2]
	if ((query = index(path, "?")) > 0) {
		source = "letter"; campaign = path; path = substr(path, 1, query - 1)
		sub(/.*utm_campaign=/, "", campaign); campaign = tolower(campaign)
	}
	browser = $6 ~ /Edg\// ? "Edge" : $6 ~ /Firefox/ ? "Firefox" : $6 ~ /Chrome/ ? "Chrome" : "Safari"
	system_ = $6 ~ /Windows/ ? "Windows" : $6 ~ /Android/ ? "Android" : $6 ~ /iPhone/ ? "iOS" : $6 ~ /Macintosh/ ? "macOS" : "Linux"
	country = address !~ /:/ ? "" : address ~ /^2001:db8:[89a-f][0-9a-f][0-9a-f][0-9a-f]:/ ? "FR" : "DE"

	if (came(site)) {
		add(site, "source", source); add(site, "campaign", campaign); add(site, "country", country); add(site, "hour", hour)
		add(site, "browser", browser); add(site, "system", system_); add(site, "device", $6 ~ /Mobile/ ? "phone" : "desktop")
	}
	if (came(site path)) { add(site path, "source", source); add(site path, "campaign", campaign) }
}
END { for (key in pv) print key, pv[key], newcomers[key] + 0 }
