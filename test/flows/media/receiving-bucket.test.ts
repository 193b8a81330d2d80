import { expect, test } from 'vitest'
import { LinkedHarness } from '../../linked-harness.ts'
import { until } from '../../until.ts'
import { eventsOf, hashOf, MEDIA_FORMS, newContact, sendFrom, untilSettled } from './receiving-harness.ts'
import { S3Server } from './s3-server.ts'

test('PostgreSQL and a bucket: every file is fetched, even after the bucket refused it', async () => {
  const server = await new S3Server().listen()
  const env = {
    MEDIA_URL: `s3://media/pombal?endpoint=${server.url}&region=eu-west-1`,
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'secret',
  }
  await using harness = await LinkedHarness.open('postgres', { env })
  const number = await harness.link()
  try {
    let refused = 0
    server.fails = request => /^(PUT|POST)/.test(request) && ++refused <= 2
    const sent = await Promise.all(MEDIA_FORMS.map(form => sendFrom(harness, number, newContact(), form)))
    for (const { id, hash } of sent) {
      const events = await untilSettled(harness, number, id)
      expect(events.map(({ event }) => event)).toEqual(['message.received', 'media.ready'])
      expect(await hashOf(harness, number, events[0]!.data.media.id)).toBe(hash)
    }
    expect(refused).toBeGreaterThan(2)
    expect([server.objects.size, server.uploads.size]).toEqual([sent.length, 0])

    await harness.network.misbehave({
      kind: 'rule',
      rule: { when: { stanza: 'download', times: 1 }, do: { bytesPerSecond: 20_000 } },
    })
    const last = await sendFrom(harness, number, newContact(), 'video', { size: 200_000 })
    await until('the message', async () => (await eventsOf(harness, number, last.id)).length > 0)
    await harness.kill()
    const events = await untilSettled(harness, number, last.id)
    expect(await hashOf(harness, number, events[0]!.data.media.id)).toBe(last.hash)
  } finally {
    await server.close()
  }
})
