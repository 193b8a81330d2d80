import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { until } from '../../until.ts'
import { type Linked, NodesHarness } from './harness.ts'

/** A send whose hint was lost is found by a poll, which takes up to 5 s. */
const BY_HINT_MS = 4_000
const CONTACT = '5511987654321'

/** Every node sends for every instance and reports its events; nothing arrives twice. */
async function allWork(harness: NodesHarness, linked: readonly Linked[], text: string): Promise<void> {
  const up = harness.nodes.filter(({ url }) => url !== null)
  await Promise.all(
    linked.flatMap(instance =>
      up.map(async node => {
        const { id } = await instance.through(node).send(CONTACT, `${text} ${instance.id} ${node.pid}`)
        await harness.untilReported(id, 'message.read')
      }),
    ),
  )
  const inbox = await harness.network.inbox(CONTACT)
  expect(inbox.filter(({ copies }) => copies > 1)).toEqual([])
  expect(inbox.filter(message => message.text.startsWith(text))).toHaveLength(linked.length * up.length)
}

test(
  'instances are spread evenly, and again when a node starts, stops or is killed',
  async () => {
    await using harness = await NodesHarness.open(3)
    const [first, second, third] = harness.nodes
    await third!.kill('SIGTERM')
    const linked = await Promise.all(Array.from({ length: 6 }, () => harness.link(first!)))
    await until('two nodes to share', async () => `${await harness.spread()}` === '3,3,0')
    await allWork(harness, linked, 'by two')

    await third!.start()
    await until('three nodes to share', async () => `${await harness.spread()}` === '2,2,2')
    await Promise.all(linked.map(({ id }) => first!.admin.untilState(id, 'connected')))
    await allWork(harness, linked, 'by three')

    const stopped = second!.pid
    await second!.kill('SIGTERM')
    // The node released its leases, so the others need not wait until they lapse.
    const kept = `select 1 from leases where owner like '%-${stopped}-%' and lease_until > 0`
    expect(await harness.query(kept)).toEqual([])
    await until('the two that are left to share', async () => `${await harness.spread()}` === '3,0,3')
    await Promise.all(linked.map(({ id }) => first!.admin.untilState(id, 'connected')))
    await allWork(harness, linked, 'after SIGTERM')

    const { pid } = third!
    await third!.kill('SIGKILL')
    // As if it had been gone for 10 s already, of the 15 that its leases last.
    await harness.query(`update leases set lease_until = lease_until - 10000 where owner like '%-${pid}-%'`)
    await harness.query(`update nodes set seen_until = seen_until - 10000 where id like '%-${pid}-%'`)
    await until('the last one to have taken over', async () => `${await harness.spread()}` === '6,0,0')
    await Promise.all(linked.map(({ id }) => first!.admin.untilState(id, 'connected')))
    await allWork(harness, linked, 'after a kill')
    // No account was ever opened from two places: WhatsApp would have ended the first with a conflict.
    for (const node of harness.nodes) expect(node.wholeOutput).not.toMatch(/"code":440/)
  },
  LONG_TEST_WITHIN_MS,
)

test(
  'a send accepted by any node reaches its owner by a hint',
  async () => {
    await using harness = await NodesHarness.open(2)
    const linked = await harness.link(harness.nodes[0]!)
    const owner = await until('an owner', () => harness.ownerOf(linked.id))
    const other = harness.nodes.find(node => node !== owner)!
    const tookMs: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const startedAt = performance.now()
      const { id } = await linked.through(other).send(CONTACT, `round ${round}`)
      await harness.untilReported(id, 'message.sent')
      tookMs.push(performance.now() - startedAt)
    }
    // The median, because the machine may be busy during a round.
    expect(tookMs.toSorted((a, b) => a - b)[2]).toBeLessThan(BY_HINT_MS)
    // Two nodes that accept at the same time assign numbers concurrently, so messages may be committed in another order than their
    // numbers.
    const sent = await Promise.all(
      Array.from({ length: 40 }, (_, n) => linked.through(harness.nodes[n % 2]!).send(CONTACT, `together ${n}`)),
    )
    await Promise.all(sent.map(({ id }) => harness.untilReported(id, 'message.sent')))
  },
  LONG_TEST_WITHIN_MS,
)
