-- Each thread sends the visits of a file of its own, a line each, in their order: the page, and behind a tab the visitor's address.
-- The arguments are the files' name without the thread's number, and a file of what requests end with (the query, and behind tabs
-- headers; each request has those of the next line). A proxy names the visitors.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end

function init(args)
  visits = assert(io.open(args[1] .. "." .. number))
  head, tails = "GET /visit?app=demo&uri=http://", {}
  for line in io.lines(args[2]) do
    local query, headers = line:match("^([^\t]*)\t?(.*)$")
    local tail = query .. " HTTP/1.1\r\nHost: " .. wrk.host .. "\r\n"
    if headers ~= "" then
      tail = tail .. headers:gsub("\t", "\r\n") .. "\r\n"
    end
    table.insert(tails, tail)
  end
  uncounted = "GET /readyz HTTP/1.1\r\nHost: " .. wrk.host .. "\r\n\r\n"
  sent, ended = 0, 0
  rehearsed = number ~= 1
end

function request()
  if not rehearsed then -- wrk asks its first thread for a request that it only looks at
    rehearsed = true
    return uncounted
  end
  local visit = visits:read("*l")
  if not visit then
    ended = 1
    wrk.thread:stop()
    return uncounted
  end
  sent = sent + 1
  local tail, tab = tails[sent % #tails + 1], visit:find("\t", 1, true)
  local page, address = visit:sub(1, tab - 1), visit:sub(tab + 1)
  return head .. page .. tail .. "X-Forwarded-For: " .. address .. "\r\n\r\n"
end

-- One line for the program that reads this output: times in whole microseconds, and of each thread how many visits it sent.
function done(summary, latency, requests)
  local e = summary.errors
  local sent, ended = {}, 0
  for i, thread in ipairs(threads) do
    sent[i] = thread:get("sent")
    ended = ended + thread:get("ended")
  end
  io.write(string.format(
    'result {"requests":%d,"us":%d,"p50":%d,"p99":%d,"errors":%d,"ended":%d,"sent":[%s]}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout, ended, table.concat(sent, ",")))
end
