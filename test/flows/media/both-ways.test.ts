import { expect, test } from 'vitest'
import { MEDIA_FORMS } from '../../../src/domain/media.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness } from '../../linked-harness.ts'
import { until } from '../../until.ts'
import { sha256 } from './harness.ts'
import { openMediaPlace } from './media-place.ts'
import { hashOf, newContact, sendFrom, untilSettled } from './receiving-harness.ts'
import { sampleFile } from './sample-files.ts'

/** Sent to a bucket in two parts. */
const LARGE_BYTES = 6_000_000

test.each(ONE_STORE)(
  'every type goes out and comes in, byte by byte, on %s',
  async store => {
    await using place = await openMediaPlace(store)
    await using harness = await LinkedHarness.open(store, { env: place.env })
    const number = await harness.link()
    const sizes = MEDIA_FORMS.map((form, n) => ({ form, size: n === 0 ? LARGE_BYTES : 100_000 }))
    for (const { form, size } of sizes) {
      const to = newContact()
      const { bytes, mimetype } = sampleFile(form, size)
      const { id, media } = await number.instance.sendFile(to, bytes, { as: form })
      await until(`${form} to be read`, async () => (await number.instance.message(id)).status === 'read')
      const inbox = await harness.network.inbox(to)
      expect(inbox.map(each => each.media)).toMatchObject([{ type: form, mimetype, sha256: sha256(bytes) }])
      expect(inbox[0]!.media!.problem).toBeUndefined()
      expect(await hashOf(harness, number, media)).toBe(sha256(bytes))

      const sent = await sendFrom(harness, number, newContact(), form, { size })
      const events = await untilSettled(harness, number, sent.id)
      expect(events.map(({ event }) => event)).toEqual(['message.received', 'media.ready'])
      const { id: received, ...facts } = events[1]!.data.media
      expect(facts).toMatchObject({ mimetype: sent.mimetype, size: sent.size, sha256: sent.hash })
      expect(await hashOf(harness, number, received)).toBe(sent.hash)
    }
    expect(place.names()).toHaveLength(2 * MEDIA_FORMS.length)
  },
  LONG_TEST_WITHIN_MS,
)
