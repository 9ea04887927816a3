-- Sends the requests of a file in turn, by wrk, and prints one line of JSON for compare.py:
--
--     wrk --threads 2 --connections 16 --duration 5s --script service/bench/wrk.lua http://127.0.0.1:8080 -- FILE
--
-- `fastdx-load --save FILE` writes the file: before each request, a line with the number of its bytes.

local threads = 0
local requests = {}

function setup(thread)
   -- The threads do not send the same requests at the same time.
   thread:set("place", threads * 37)
   threads = threads + 1
end

function init(arguments)
   local file = assert(io.open(arguments[1], "rb"))
   for length in file:lines() do
      table.insert(requests, file:read(tonumber(length)))
   end
   file:close()
end

function request()
   place = place % #requests + 1
   return requests[place]
end

function done(summary, latency)
   local errors = summary.errors
   local broken = errors.connect + errors.read + errors.write + errors.timeout
   -- wrk counts the requests that slow answers held back, too.
   print(string.format(
      '{"per_second": %.0f, "p50_ms": %.3f, "p99_ms": %.3f, "failed": %d, "broken": %d}',
      summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3,
      latency:percentile(99) / 1e3, errors.status, broken))
end
