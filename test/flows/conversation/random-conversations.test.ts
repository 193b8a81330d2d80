import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness } from '../../linked-harness.ts'
import { newSeed } from '../../rig/random.ts'
import { Talking } from './harness.ts'
import { DEEDS, RandomConversation, type Step, TROUBLES, WRITERS } from './random-conversation.ts'

/** `CONVERSATIONS=200` for a longer run, `CONVERSATION_SEED` to repeat one. */
const RUNS = Number(process.env['CONVERSATIONS'] ?? 8)
/** Conversations of different instances at the same time. */
const AT_ONCE = 4

const step: fc.Arbitrary<Step> = fc.record({
  by: fc.constantFrom(...WRITERS),
  deed: fc.constantFrom(...DEEDS, 'text' as const),
  target: fc.nat(30),
  trouble: fc.oneof(
    { weight: 8, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.constantFrom(...TROUBLES) },
  ),
})
interface Conversation {
  steps: Step[]
  isHidden: boolean
  /** After this step WhatsApp names the contact's number too. */
  revealAfter: number
}

const conversation: fc.Arbitrary<Conversation> = fc.record({
  steps: fc.array(step, { minLength: 12, maxLength: 24 }),
  isHidden: fc.boolean(),
  revealAfter: fc.nat(20),
})

test.each(ONE_STORE)(
  'in random conversations both phones, the rows and the events agree, on %s',
  async store => {
    const seed = Number(process.env['CONVERSATION_SEED'] ?? newSeed())
    console.log(`random conversations: CONVERSATION_SEED=${seed} CONVERSATIONS=${RUNS}`)
    await using harness = await LinkedHarness.open(store)
    let contacts = 0
    const hold = async ({ steps, isHidden, revealAfter }: Conversation) => {
      const talking = await Talking.link(harness)
      contacts += 1
      const random = new RandomConversation(talking, `55119877${contacts.toString().padStart(5, '0')}`)
      if (isHidden) await random.hideNumber()
      for (const [index, one] of steps.entries()) {
        await random.take(one)
        if (index === revealAfter) await random.revealNumber()
      }
      return random.differences()
    }
    const conversations = fc.array(conversation, { minLength: AT_ONCE, maxLength: AT_ONCE })
    const property = fc.asyncProperty(conversations, async all => {
      expect((await Promise.all(all.map(hold))).flat()).toEqual([])
    })
    // Shrinking takes as long as many runs.
    await fc.assert(property, {
      seed,
      numRuns: Math.ceil(RUNS / AT_ONCE),
      endOnFailure: !process.env['CONVERSATION_SEED'],
    })
  },
  LONG_TEST_WITHIN_MS,
)
