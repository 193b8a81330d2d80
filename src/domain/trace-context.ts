import type { InstanceId, MessageId } from './ids.ts'

/** Version 00 of the header `traceparent`: the ID of a trace, the ID of the span that caused the call, and flags. */
export type Traceparent = string

/** The length of version 00. A later version may append fields after a hyphen. */
const LENGTH = 55
const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/
/** "sampled", the only flag of version 00. */
const SAMPLED = 1

/**
 * Reads the header `traceparent` (W3C Trace Context 1, section 3.2). Trace IDs of later versions are passed on as version 00, as section
 * 4.3 requires.
 * @returns undefined if it is not valid: a broken header is ignored, never refused (section 4.3)
 */
export function parseTraceparent(header: string | readonly string[] | undefined): Traceparent | undefined {
  if (typeof header !== 'string') return undefined
  const [, traceId, spanId, flags] = FORM.exec(header.slice(0, LENGTH)) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  const isLonger = header.length > LENGTH
  if (isLonger && (header.startsWith('00') || header[LENGTH] !== '-')) return undefined
  const sampled = Number.parseInt(flags, 16) & SAMPLED
  return `00-${traceId}-${spanId}-0${sampled}`
}

/** The attempt to send one message, as it ended. */
export interface SendTrace {
  instanceId: InstanceId
  messageId: MessageId
  /** Of the message. */
  traceparent: Traceparent
  durationMs: number
  /** Null: WhatsApp has it. Otherwise the code of the failure, or why it is sent again. */
  problem: string | null
}

/** A span that has begun. */
export interface OpenSpan {
  /** The trace context of what it causes. */
  traceparent: Traceparent | undefined
  /** @param problem a code; null if there is none */
  end(problem: string | null, status?: number | null): void
}
