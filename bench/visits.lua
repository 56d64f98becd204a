-- Random visits of 200,000 visitors to the 1,000 pages of one site. Every contender gets the same ones: the seed is the
-- argument, with the thread's number.

local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

function init(args)
  math.randomseed(tonumber(args[1]) * 100 + number)
  visitors, pages = {}, {}
  for n = 0, 199999 do
    visitors[n] = "GET /visit?app=demo&ip=10." .. math.floor(n / 65536) .. "." .. math.floor(n / 256) % 256 .. "." .. n % 256
  end
  for n = 0, 999 do
    pages[n] = "&uri=http://bench.example/page/" .. n .. " HTTP/1.1\r\nHost: " .. wrk.host .. "\r\n\r\n"
  end
end

function request()
  return visitors[math.random(0, 199999)] .. pages[math.random(0, 999)]
end

-- One line for whoever reads this output, in whole microseconds.
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    "result requests=%d us=%d p50=%d p99=%d max=%d connect=%d read=%d write=%d status=%d timeout=%d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    e.connect, e.read, e.write, e.status, e.timeout))
end
