import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Calls a second, half of them reads and half texts. */
const CALLS_PER_SECOND = 20

export interface Measured {
  calls: number
  /** Responses other than 200 and 202, and calls without a response. */
  refused: string[]
  p50Ms: number
  p95Ms: number
  maxMs: number
  /** Resident memory of the service at its largest, MiB. */
  peakMib: number
}

export interface Caller {
  url: string
  token: string
  /** The process ID of the service. */
  pid: number
  /** A call that takes longer counts as refused. */
  timeoutMs: number
}

/** Calls at a constant rate, without waiting for earlier responses. */
export async function measureCallers({ url, token, pid, timeoutMs }: Caller, forMs: number): Promise<Measured> {
  const tookMs: number[] = []
  const refused: string[] = []
  const running: Promise<void>[] = []
  let peakMib = 0
  const call = async (path: string, body?: string) => {
    const begunAt = performance.now()
    const outcome = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      signal: AbortSignal.timeout(timeoutMs),
      ...(body !== undefined && { body }),
    }).then(
      async response => `${response.status} ${await response.text()}`,
      error => `${error.name}: ${error.cause?.code ?? error.message}`,
    )
    tookMs.push(performance.now() - begunAt)
    if (!outcome.startsWith('20')) refused.push(outcome)
  }
  const count = Math.round((forMs / 1_000) * CALLS_PER_SECOND)
  const begunAt = performance.now()
  for (let n = 0; n < count; n += 1) {
    const dueAt = begunAt + (n * 1_000) / CALLS_PER_SECOND
    await sleep(Math.max(0, dueAt - performance.now()))
    running.push(n % 2 === 0 ? call('/v1/instance') : call('/v1/messages/text', textTo(n)))
    peakMib = Math.max(peakMib, residentMib(pid))
  }
  await Promise.all(running)
  tookMs.sort((a, b) => a - b)
  const at = (share: number) => Math.round(tookMs[Math.min(tookMs.length - 1, Math.floor(tookMs.length * share))] ?? 0)
  return { calls: tookMs.length, refused, p50Ms: at(0.5), p95Ms: at(0.95), maxMs: at(1), peakMib }
}

function textTo(n: number): string {
  return JSON.stringify({ to: `55119876543${String(n % 100).padStart(2, '0')}`, text: `text ${n}` })
}

/** 0 if the system does not report it (outside Linux). */
export function residentMib(pid: number): number {
  try {
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024)
  } catch {
    return 0
  }
}
