import { randomBytes } from 'node:crypto'
import { MEDIA_FORMS, type MediaForm } from '../../../src/domain/media.ts'
import type { LinkedHarness, LinkedNumber } from '../../linked-harness.ts'
import { eventOf } from '../../receiver.ts'
import { until } from '../../until.ts'
import { MediaClient, sha256 } from './harness.ts'
import { sampleFile } from './sample-files.ts'

export interface SentFile {
  form: MediaForm
  hash: string
  size: number
  mimetype: string
}

/** The file of an event or a message. */
export interface ShownMedia {
  id: string
  mimetype: string
  size: number
  sha256: string
  filename?: string | null
  status?: string
  error?: { code: string } | null
}

interface MediaEvent {
  event: string
  data: { id: string; messageId: string; chat: string; media: ShownMedia; text?: string; type: string }
}

/** A contact sends a file with random content to the number. */
export async function sendFrom(
  { network }: LinkedHarness,
  { phone }: LinkedNumber,
  from: string,
  form: MediaForm = 'image',
  { size = 40_000, ...more }: { size?: number; caption?: string; filename?: string; mimetype?: string } = {},
): Promise<SentFile & { id: string }> {
  const { bytes, mimetype } = sampleFile(form, size)
  const media = { type: form, mimetype, ...more, bytes }
  const { id } = await network.writeAs({ from, to: phone, media })
  return { id, form, hash: sha256(bytes), size: bytes.length, mimetype }
}

/** The events of the number, as the feed shows them. */
export async function feedOf(harness: LinkedHarness, { instance }: LinkedNumber): Promise<MediaEvent[]> {
  const events: MediaEvent[] = []
  for (let after = ''; ; ) {
    const query = `?limit=1000${after === '' ? '' : `&after=${after}`}`
    const response = await fetch(`${harness.service.url}/v1/events${query}`, {
      headers: { authorization: `Bearer ${instance.token}` },
    })
    const { data, nextCursor } = (await response.json()) as { data: { body: MediaEvent }[]; nextCursor: string }
    if (data.length === 0) return events
    events.push(...data.map(({ body }) => body))
    after = nextCursor
  }
}

/** The events about one file. */
export async function eventsOf(harness: LinkedHarness, number: LinkedNumber, id: string): Promise<MediaEvent[]> {
  const about = ['message.received', 'media.ready', 'media.failed']
  return (await feedOf(harness, number)).filter(({ event, data }) => about.includes(event) && data.id === id)
}

/** Waits until the file was fetched or given up. @returns its two events */
export function untilSettled(harness: LinkedHarness, number: LinkedNumber, id: string, withinMs?: number) {
  const look = async () => {
    const events = await eventsOf(harness, number, id)
    return events.some(({ event, data }) => event !== 'message.received' || data.media.error) && events
  }
  return until(`the file of ${id}`, look, withinMs)
}

/** Downloads it and returns its hash. */
export async function hashOf(harness: LinkedHarness, { instance }: LinkedNumber, media: string): Promise<string> {
  const { status, bytes } = await new MediaClient(harness.service.url!, instance).download(`${media}?wait=20`)
  return status === 200 ? sha256(bytes) : `status ${status}`
}

export const messageOf = ({ instance }: LinkedNumber, id: string) =>
  instance.message(id) as unknown as Promise<{ text: string | null; type: string; media: ShownMedia }>

/** A number that no other test uses. */
export function newContact(): string {
  return `5511${randomBytes(4).readUInt32BE().toString().padStart(10, '0').slice(0, 9)}`
}

/** The events that the webhook got. */
export function posted({ receiver }: LinkedHarness): { event: string; data: { id: string } }[] {
  return receiver.requests.map(eventOf) as unknown as { event: string; data: { id: string } }[]
}

export { MEDIA_FORMS }
