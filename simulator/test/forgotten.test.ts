import { expect, it } from 'vitest'
import { startSimulator } from './world.ts'

const CONTACT = '5511999990001'

it('a removed account leaves nobody typing and no calls behind', async () => {
  const simulator = await startSimulator()
  const { phone } = await simulator.openAccount('a')
  const other = await simulator.openAccount('b')
  for (const to of [phone, other.phone]) {
    await simulator.typeAs({ from: CONTACT, to, state: 'composing' })
    await simulator.callAs({ from: CONTACT, to })
  }
  await simulator.removeAccount('a')
  await simulator.openAccount('a')
  expect(await simulator.presence(phone)).toEqual({ available: false, typing: [] })
  expect(await simulator.calls(phone)).toEqual([])
  expect((await simulator.presence(other.phone)).typing).toHaveLength(1)
  expect(await simulator.calls(CONTACT)).toMatchObject([{ to: other.phone }])
})

it('the network remembers only the latest calls and writers', async () => {
  const simulator = await startSimulator()
  const { phone } = await simulator.openAccount('a')
  const first = await simulator.callAs({ from: CONTACT, to: phone })
  for (let count = 0; count < 1_000; count += 1) await simulator.callAs({ from: CONTACT, to: phone })
  expect(await simulator.calls(phone)).toHaveLength(1_000)
  await expect(simulator.endCall(first.id)).rejects.toMatchObject({ code: 'invalid_argument' })
  for (let count = 0; count <= 10_000; count += 1)
    await simulator.typeAs({ from: `55119${10_000_000 + count}`, to: phone, state: 'composing' })
  const { typing } = await simulator.presence(phone)
  expect(typing).toHaveLength(10_000)
  expect(typing.at(-1)).toMatchObject({ from: '5511910010000' })
})
