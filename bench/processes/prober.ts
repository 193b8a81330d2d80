/**
 * A caller that posts and reads at fixed times, without waiting for earlier answers. A slow answer therefore delays no
 * later request, so the waiting time of those is measured too.
 */
import { Agent, request } from 'node:http'
import { serve } from '../harness/remote.ts'
import { quantile } from '../harness/statistics.ts'

export interface Probe {
  url: string
  tokens: string[]
  /** The recipient of the texts. */
  to: string
  everyMs: number
}

export interface ProbeResult {
  calls: number
  /** Calls with an unexpected answer, or none. */
  failed: number
  medianMs: number
  p95Ms: number
  p99Ms: number
  longestMs: number
}

const agent = new Agent({ keepAlive: true })
let timer: NodeJS.Timeout | undefined
let asked: Promise<void>[] = []
let latencies: number[] = []
let failed = 0

function begin({ url, tokens, to, everyMs }: Probe): void {
  asked = []
  latencies = []
  failed = 0
  let count = 0
  timer = setInterval(() => {
    const token = tokens[count % tokens.length]!
    const posts = count++ % 2 === 0
    asked.push(posts ? post(url, token, to, count) : call(`${url}/v1/instance`, 'GET', token, 200))
  }, everyMs)
}

/** @returns the measurements since `begin` */
async function end(): Promise<ProbeResult> {
  clearInterval(timer)
  await Promise.all(asked)
  return {
    calls: asked.length,
    failed,
    medianMs: quantile(latencies, 0.5),
    p95Ms: quantile(latencies, 0.95),
    p99Ms: quantile(latencies, 0.99),
    longestMs: Math.max(...latencies),
  }
}

function post(url: string, token: string, to: string, count: number): Promise<void> {
  return call(`${url}/v1/messages/text`, 'POST', token, 202, JSON.stringify({ to, text: `text ${count}` }))
}

/** Resolves when the answer is complete or the call has failed. */
function call(url: string, method: string, token: string, expected: number, body?: string): Promise<void> {
  const startedAt = performance.now()
  return new Promise(resolve => {
    const over = (status: number | undefined) => {
      latencies.push(performance.now() - startedAt)
      if (status !== expected) failed += 1
      resolve()
    }
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    }
    const sent = request(url, { agent, method, headers }, response => {
      response.resume().on('close', () => over(response.statusCode))
    })
    sent.on('error', () => over(undefined))
    sent.end(body)
  })
}

const methods = { begin, end }
export type ProberProcess = typeof methods
serve(methods)
