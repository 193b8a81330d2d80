/**
 * Posts the next request as soon as the last one is answered, on each connection (`run`, `post`); or at fixed times, however
 * long the answers take (`pace`).
 */
import { Caller, type PostRequest, requestBytes } from '../harness/caller.ts'
import { monotonicMs } from '../harness/clock.ts'
import { runPaced } from '../harness/paced.ts'
import { serve } from '../harness/remote.ts'
import { quantile } from '../harness/statistics.ts'

export interface Target {
  url: string
  /** The same bytes are posted repeatedly. */
  requests: PostRequest[]
  /** Each posts its share of the requests in turn. Default: one connection for each request. */
  connections?: number
  expectedStatus: number
}

export interface TimedLoad extends Target {
  /** Not measured. */
  warmUpMs: number
  durationMs: number
}

export interface PacedLoad extends Target {
  perSecond: number
  durationMs: number
  /** Adds the number of the call, from 0, to each text. */
  numbered?: boolean
}

/** The latencies of the answered requests; the load's duration if there were none. */
export interface Latencies {
  medianMs: number
  p95Ms: number
  p99Ms: number
}

export interface LoadResult extends Latencies {
  perSecond: number
}

export interface PacedResult extends Latencies {
  /** The moment of each call on the monotonic clock. */
  scheduledAt: number[]
}

async function run(load: TimedLoad): Promise<LoadResult> {
  const latencies: number[] = []
  const failed = Promise.withResolvers<never>()
  const pass = (ms: number) => Promise.race([new Promise(resolve => setTimeout(resolve, ms)), failed.promise])
  const callers = shares(load).map(requests => {
    let turn = 0
    const next = () => requests[turn++ % requests.length]!
    return new Caller({ ...load, next, answered: latencyMs => latencies.push(latencyMs), failed: failed.reject })
  })
  try {
    await pass(load.warmUpMs)
    latencies.length = 0
    const startedAt = performance.now()
    await pass(load.durationMs)
    const seconds = (performance.now() - startedAt) / 1000
    return { perSecond: latencies.length / seconds, ...summaryOf(latencies, load.durationMs) }
  } finally {
    for (const caller of callers) caller.close()
  }
}

async function post({ count, ...target }: Target & { count: number }): Promise<void> {
  const done = Promise.withResolvers<void>()
  let posted = 0
  let answered = 0
  const onAnswer = () => {
    answered += 1
    if (answered === count) done.resolve()
  }
  const callers = shares(target).map(requests => {
    let turn = 0
    const next = () => (posted++ < count ? requests[turn++ % requests.length]! : null)
    return new Caller({ ...target, next, answered: onAnswer, failed: done.reject })
  })
  try {
    await done.promise
  } finally {
    for (const caller of callers) caller.close()
  }
}

/** Any free connection posts the next request. Latencies count from the scheduled moment. */
async function pace({ perSecond, durationMs, numbered = false, ...target }: PacedLoad): Promise<PacedResult> {
  const { url, requests, connections = requests.length } = target
  const count = Math.round((perSecond * durationMs) / 1_000)
  const scheduledAt: number[] = []
  const latencies: number[] = []
  const done = Promise.withResolvers<void>()
  let posted = 0
  const callers = Array.from({ length: connections }, () => {
    let index = 0
    const next = () => {
      if (posted === scheduledAt.length) return null
      index = posted++
      const request = requests[index % requests.length]!
      return requestBytes(url, numbered ? withNumber(request, index) : request)
    }
    const answered = () => {
      latencies.push(monotonicMs() - scheduledAt[index]!)
      if (latencies.length === count) done.resolve()
    }
    return new Caller({ ...target, next, answered, failed: done.reject })
  })
  void runPaced(perSecond, count, (_index, at) => {
    scheduledAt.push(at)
    for (const caller of callers) caller.wake()
  })
  try {
    await done.promise
    return { ...summaryOf(latencies, durationMs), scheduledAt }
  } finally {
    for (const caller of callers) caller.close()
  }
}

function withNumber({ body, ...request }: PostRequest, index: number): PostRequest {
  return { ...request, body: { ...body, text: `${body.text} ${index}` } }
}

/** The requests of each connection. */
function shares({ url, requests, connections = requests.length }: Target): Buffer[][] {
  const all = requests.map(request => requestBytes(url, request))
  return Array.from({ length: connections }, (_, own) => all.filter((_, index) => index % connections === own))
}

function summaryOf(latencies: readonly number[], durationMs: number): Latencies {
  const values = latencies.length === 0 ? [durationMs] : latencies
  return { medianMs: quantile(values, 0.5), p95Ms: quantile(values, 0.95), p99Ms: quantile(values, 0.99) }
}

const methods = { run, post, pace }
export type LoadProcess = typeof methods
serve(methods)
