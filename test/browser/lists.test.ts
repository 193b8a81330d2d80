import type { Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { InboxChat } from '../../panel/src/api/types.ts'
import { en } from '../../panel/src/i18n/en.ts'
import { Receiver } from '../receiver.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'
import { seedInstances } from './seed.ts'

/** More than a page of a list. */
const INSTANCES = 150

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
  const { service } = harness
  await service.kill('SIGTERM')
  await seedInstances(service.dataDir, INSTANCES, 'sandbox', index => `Shop ${String(index).padStart(3, '0')}`)
  await service.start()
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

/** Waits until the page has drawn what it knows. */
function drawn(page: Page): Promise<void> {
  return page.evaluate(async () => {
    for (let frames = 0; frames < 20; frames += 1) await new Promise(requestAnimationFrame)
  })
}

test('a further page that fails is read once, and again after a click', async () => {
  const page = await harness.openSignedIn('/settings')
  let reads = 0
  await page.route(/\/admin\/v1\/instances\?.*cursor=/, route => {
    reads += 1
    return route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'Broken.' } } })
  })
  await page.goto(harness.url)
  await page.getByRole('table').waitFor()
  await until('the end of the first page', async () => {
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight))
    return reads > 0
  })
  const problem = page.getByRole('alert').filter({ hasText: en.problems.internal_error })
  await problem.waitFor()
  await drawn(page)
  expect(reads).toBe(1)
  expect(await page.getByText(en.common.more).count()).toBe(0)

  await page.unrouteAll({ behavior: 'wait' })
  await problem.getByRole('button', { name: en.common.tryAgain }).click()
  await until('the end of the list', async () => {
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight))
    return page.getByText(en.common.end).isVisible()
  })
  // The browser's own line about the status 500.
  harness.complaints.length = 0
})

test('while the list is read again after a search without hits, it does not claim that there are no instances', async () => {
  const page = await harness.openSignedIn('/')
  await page.getByRole('table').waitFor()
  await page.getByRole('searchbox').fill('no such shop')
  await page.getByText(en.instances.noneFound, { exact: true }).waitFor()
  const answer = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  await page.route(/\/admin\/v1\/instances\?/, async route => {
    asked.resolve()
    await answer.promise
    await route.continue()
  })
  await page.getByRole('searchbox').fill('')
  await asked.promise
  await drawn(page)
  expect(await page.getByText(en.instances.emptyTitle).count()).toBe(0)
  expect(await page.getByRole('searchbox').isVisible()).toBe(true)
  answer.resolve()
  await page.getByRole('table').waitFor()
  expect(harness.complaints).toEqual([])
})

test('a letter that is typed while a filter is being applied stays in the field', async () => {
  const page = await harness.openSignedIn('/settings')
  // Types the next letter at the moment at which the panel writes the filter into the address.
  await page.addInitScript(() => {
    const replace = history.replaceState.bind(history)
    history.replaceState = (...entry) => {
      replace(...entry)
      const field = document.querySelector<HTMLInputElement>('input[placeholder="replaceToken"]')
      if (!String(entry[2]).includes('action=send') || field?.value !== 'send') return
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!.call(field, 'sendT')
      field.dispatchEvent(new Event('input', { bubbles: true }))
    }
  })
  await page.goto(`${harness.url}/audit`)
  const field = page.getByPlaceholder('replaceToken')
  await field.pressSequentially('send')
  await page.waitForURL(/action=sendT/)
  expect(await field.inputValue()).toBe('sendT')
})

test('beyond the first hundred chats, a new message moves its chat to the top with its text, and a visible chat stays current', async () => {
  const { id } = await harness.service.admin.createConnected('Many chats')
  await harness.service.admin.writeAsContact(id, { from: '5511900000000', text: 'Hello' })
  const page = await harness.openSignedIn('/')
  const order = Array.from({ length: 130 }, (_, index) => `5511900000${String(index).padStart(3, '0')}`)
  const texts = new Map<string, string>()
  await page.route(/\/chats\?/, route => answerChats(route, order, texts))
  await page.goto(`${harness.url}/instances/${id}/inbox`)
  const list = page.getByRole('navigation', { name: en.inbox.chats })
  const entry = (chat: string) => list.locator(`[data-chat="${chat}"]`)
  const moved = order[120]!
  await until('the second page', async () => {
    await list.evaluate(element => element.scrollTo(0, element.scrollHeight))
    return (await entry(moved).count()) === 1
  })

  order.unshift(...order.splice(120, 1))
  texts.set(moved, 'A new message')
  await harness.service.admin.writeAsContact(id, { from: '5511900000000', text: 'Something happens' })
  await entry(moved).getByText('A new message').waitFor()
  expect(await list.locator('[data-chat]').first().getAttribute('data-chat')).toBe(moved)
  expect(await entry(moved).getByText('1 unread').count()).toBe(1)

  const last = order.at(-1)!
  await list.evaluate(element => element.scrollTo(0, element.scrollHeight))
  await entry(last).scrollIntoViewIfNeeded()
  texts.set(last, 'Edited meanwhile')
  await harness.service.admin.writeAsContact(id, { from: '5511900000000', text: 'Something else happens' })
  await entry(last).getByText('Edited meanwhile').waitFor()
  expect(harness.complaints).toEqual([])
})

test('a chat that is not in the loaded part of the list can be marked as read', async () => {
  const { id } = await harness.service.admin.createConnected('Old chat')
  const write = (from: string, text: string) => harness.service.admin.writeAsContact(id, { from, text })
  await write('5511900000001', 'Hello')
  const page = await harness.openSignedIn('/')
  let searches = 0
  const texts = new Map([['5511900000000', 'First']])
  await page.route(/\/chats\?/, route => {
    if (!route.request().url().includes('search=')) return answerChats(route, ['5511900000000'], texts)
    searches += 1
    return route.continue()
  })
  await page.goto(`${harness.url}/instances/${id}/inbox?chat=5511900000001`)
  const mark = page.getByRole('button', { name: en.inbox.markRead })
  await mark.click()
  await mark.waitFor({ state: 'detached' })

  // A message in another chat does not search for this one again. A message in this one does.
  const before = searches
  texts.set('5511900000000', 'Second')
  await write('5511900000002', 'Something happens')
  await page.getByText('Second', { exact: true }).waitFor()
  expect(searches).toBe(before)
  await write('5511900000001', 'Hello again')
  await mark.waitFor()
  expect(harness.complaints).toEqual([])
})

test('a list and a state that cannot be read again are not shown as current', async () => {
  const { admin } = harness.service
  const { id } = await admin.createConnected('Failing reads')
  const write = (text: string) => admin.writeAsContact(id, { from: '5511900000001', text })
  await write('First')
  const page = await harness.openSignedIn(`/instances/${id}/inbox`)
  const connected = en.connection.states.connected.name
  await page.getByText('First', { exact: true }).waitFor()
  await page.getByText(connected, { exact: true }).waitFor()
  const refusal = { error: { code: 'internal_error', message: 'Broken.' } }
  await page.route(/\/admin\/v1\/instances\/inst_\w+(\/chats\?.*)?$/, route =>
    route.fulfill({ status: 500, json: refusal }),
  )
  await write('Second')
  const problem = page.getByRole('alert').filter({ hasText: en.common.outdated })
  await problem.waitFor()
  await admin.rename(id, 'Still failing')
  await page.getByText(en.connection.lastKnown(connected)).waitFor()
  // The reason.
  await page.getByRole('alert').filter({ hasText: en.problems.internal_error }).waitFor()

  await page.unrouteAll({ behavior: 'wait' })
  await write('Third')
  await admin.rename(id, 'Works again')
  await page.getByText('Third', { exact: true }).waitFor()
  await problem.waitFor({ state: 'detached' })
  await page.getByText(connected, { exact: true }).waitFor()
  // The browser's own lines about the status 500.
  harness.complaints.length = 0
})

test('instances and conversations of the sandbox phone that cannot be read again are not shown as current', async () => {
  const { admin } = harness.service
  const { id } = await admin.createConnected('Not read again')
  await admin.writeAsContact(id, { from: '5511900000001', text: 'First' })
  const fail = (page: Page, path: RegExp) =>
    page.route(path, route =>
      route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'Broken.' } } }),
    )
  const list = await harness.openSignedIn('/?search=Not%20read%20again')
  const phone = await harness.openSignedIn(`/instances/${id}/phone`)
  const connected = en.connection.states.connected.name
  await list.getByRole('row').getByText(connected, { exact: true }).waitFor()
  await phone.getByText('First', { exact: true }).first().waitFor()
  await fail(list, /\/admin\/v1\/instances\?/)
  await fail(phone, /\/conversations$/)
  await admin.rename(id, 'Not read again, renamed')
  await admin.writeAsContact(id, { from: '5511900000001', text: 'Second' })
  await list.getByRole('row').getByText(en.connection.lastKnown(connected)).waitFor()
  await phone.getByRole('alert').filter({ hasText: en.common.outdated }).waitFor()
  // The browser's own lines about the status 500.
  harness.complaints.length = 0
})

test('webhooks, health and problems that cannot be read again are not shown as current, and recover', async () => {
  const { admin } = harness.service
  const { id, token } = await admin.createConnected('Not current')
  await using receiver = await new Receiver().listen()
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(receiver.url)
  await instance.send('5511987654321', 'Hello')
  const page = await harness.openSignedIn(`/instances/${id}/webhook`)
  const working = page.getByText(en.endpoints.health.working, { exact: true })
  const outdated = page.getByRole('alert').filter({ hasText: en.common.outdated })
  const refuse = (path: RegExp) =>
    page.route(path, route =>
      route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'Broken.' } } }),
    )
  await working.waitFor()
  await refuse(/\/endpoint-health$/)
  await instance.send('5511987654321', 'Hello again')
  await page.getByText(en.connection.lastKnown(en.endpoints.health.working)).waitFor()
  await outdated.waitFor()
  expect(await working.count()).toBe(0)
  await page.unrouteAll({ behavior: 'wait' })
  await outdated.getByRole('button', { name: en.common.tryAgain }).click()
  await working.waitFor()
  expect(await outdated.count()).toBe(0)

  await page.clock.install()
  for (const [path, read, shown] of [
    [`/instances/${id}`, /\/health$/, page.locator('section').filter({ hasText: en.health.title })],
    ['/alerts', /\/admin\/v1\/(alerts\?open=true|alerts\/targets|endpoints)/, page.getByText(en.alerts.none)],
  ] as const) {
    await page.goto(harness.url + path)
    await shown.waitFor()
    await refuse(read)
    await page.clock.fastForward(20_000)
    await outdated.first().waitFor()
    if (path === '/alerts') {
      await until('an alert in each card', async () => (await outdated.count()) === 3)
      expect(await shown.count()).toBe(0)
    }
    await page.unrouteAll({ behavior: 'wait' })
    await page.clock.fastForward(20_000)
    await outdated.first().waitFor({ state: 'detached' })
    await shown.waitFor()
  }

  // Before the first connection there is no card that could be out of date.
  const { id: unlinkedId } = await admin.createInstance('sandbox', 'Never connected')
  const read = () => page.waitForResponse(response => response.url().endsWith(`${unlinkedId}/health`))
  await Promise.all([read(), page.goto(`${harness.url}/instances/${unlinkedId}`)])
  await refuse(/\/health$/)
  // The second read begins after the failure of the first one is shown.
  for (let reads = 0; reads < 2; reads += 1) await Promise.all([read(), page.clock.fastForward(20_000)])
  expect(await outdated.count()).toBe(0)
  // The browser's own lines about the status 500.
  harness.complaints.length = 0
})

test('a list that failed to be read once is read again, without an alert', async () => {
  const { id } = await harness.service.admin.createConnected('One failure')
  const write = (text: string) => harness.service.admin.writeAsContact(id, { from: '5511900000001', text })
  await write('First')
  const page = await harness.openSignedIn(`/instances/${id}/inbox`)
  await page.getByText('First', { exact: true }).waitFor()
  const alerts = await page.evaluateHandle(() => {
    const seen: string[] = []
    const look = () => seen.push(...[...document.querySelectorAll('[role="alert"]')].map(alert => alert.innerHTML))
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true })
    return seen
  })
  let failures = 0
  await page.route(
    /\/chats\?/,
    route => {
      failures += 1
      return route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'Broken.' } } })
    },
    { times: 1 },
  )
  await write('Second')
  await page.getByText('Second', { exact: true }).waitFor()
  expect(failures).toBe(1)
  expect(await alerts.jsonValue()).toEqual([])
  // The browser's own line about the status 500.
  harness.complaints.length = 0
})

test('in a conversation that cannot be read again, the messages stay visible below the alert and can be scrolled', async () => {
  const { admin } = harness.service
  const { id } = await admin.createConnected('Failing conversation')
  const write = (text: string) => admin.writeAsContact(id, { from: '5511900000001', text })
  await write(Array.from({ length: 80 }, (_, line) => `Line ${line}`).join('\n'))
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=5511900000001`)
  const log = page.getByRole('log')
  await log.getByText('Line 79').waitFor()
  await page.route(/\/conversation\?/, route =>
    route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'Broken.' } } }),
  )
  await write('Not read')
  const problem = page.locator('section').getByRole('alert')
  await problem.waitFor()
  const [above, shown, below] = await Promise.all(
    [problem, log, page.locator('form')].map(async part => (await part.boundingBox())!),
  )
  expect(above!.y + above!.height).toBeLessThanOrEqual(shown!.y)
  expect(shown!.y + shown!.height).toBeLessThanOrEqual(below!.y)
  expect(shown!.height).toBeGreaterThan(200)
  expect(await log.evaluate(box => box.scrollHeight > box.clientHeight)).toBe(true)
  await page.unrouteAll({ behavior: 'wait' })
  // The browser's own lines about the status 500.
  harness.complaints.length = 0
})

/** Answers with chats in this order, made from the real one. @param texts the texts of chats with a new message */
async function answerChats(route: Route, order: readonly string[], texts: ReadonlyMap<string, string>): Promise<void> {
  const url = new URL(route.request().url())
  const cursor = url.searchParams.get('cursor')
  url.searchParams.delete('cursor')
  const response = await route.fetch({ url: url.href })
  const [model] = ((await response.json()) as { data: InboxChat[] }).data
  const from = cursor === null ? 0 : order.indexOf(cursor) + 1
  const names = order.slice(from, from + Number(url.searchParams.get('limit')))
  const data = names.map(chat => {
    const text = texts.get(chat)
    const lastMessage = { ...model!.lastMessage, id: `msg_${chat}`, chat, text: text ?? 'An old message' }
    return { ...model, chat, lid: null, name: `Contact ${chat}`, unreadCount: text === undefined ? 0 : 1, lastMessage }
  })
  const nextCursor = names.at(-1) === order.at(-1) ? null : names.at(-1)
  await route.fulfill({ response, json: { data, nextCursor } })
}
