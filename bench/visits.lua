-- Each thread sends the visits of a file of its own, a line each, in their order. The arguments are the files' name without the
-- thread's number, and whether to begin again at the end: "again" or "once".

local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end

function init(args)
  visits = assert(io.open(args[1] .. "." .. number))
  again = args[2] == "again"
  head, tail = "GET /visit?app=demo&", " HTTP/1.1\r\nHost: " .. wrk.host .. "\r\n\r\n"
  uncounted = "GET /readyz" .. tail
  sent, ended = 0, 0
  rehearsed = number ~= 1
end

function request()
  if not rehearsed then -- wrk asks its first thread for a request that it only looks at
    rehearsed = true
    return uncounted
  end
  local visit = visits:read("*l")
  if not visit and again then
    visits:seek("set")
    visit = visits:read("*l")
  end
  if not visit then
    ended = 1
    wrk.thread:stop()
    return uncounted
  end
  sent = sent + 1
  return head .. visit .. tail
end

-- One line for whoever reads this output: times in whole microseconds, and of each thread how many visits it sent.
function done(summary, latency, requests)
  local e = summary.errors
  local sent, ended = {}, 0
  for i, thread in ipairs(threads) do
    sent[i] = thread:get("sent")
    ended = ended + thread:get("ended")
  end
  io.write(string.format(
    "result requests=%d us=%d p50=%d p95=%d p99=%d connect=%d read=%d write=%d status=%d timeout=%d ended=%d sent=%s\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95), latency:percentile(99),
    e.connect, e.read, e.write, e.status, e.timeout, ended, table.concat(sent, ",")))
end
