import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { findFreePort } from '../free-port.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const RECIPIENT = '5511987654321'
/** The browser's own console lines about a service that does not answer. */
const NOT_REACHED = /net::ERR_|Failed to load resource|Failed to fetch dynamically imported module/

describe('while deliveries fail', () => {
  let harness: PanelHarness
  beforeAll(async () => {
    harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
  })
  afterAll(() => harness.dispose())
  afterEach(() => harness.closePages())

  /** An instance whose webhook has refused every event of one message until it was exhausted. */
  async function createRefused(name: string): Promise<string> {
    const { id, token } = await harness.service.admin.createConnected(name)
    const instance = harness.service.instance(id, token)
    await instance.setWebhook(harness.receiver.url)
    harness.receiver.answerWith({ kind: 'status', status: 500 })
    await instance.send(RECIPIENT, 'Hello')
    await until('three events given up', async () => {
      return (await harness.service.admin.listEvents(id, '?state=exhausted')).length === 3
    })
    return id
  }

  test('the list and the overview warn of exhausted events until they are delivered', async () => {
    const id = await createRefused('Refused')
    const page = await harness.openSignedIn('/')
    const row = page.getByRole('row').filter({ hasText: id })
    await row.getByText('Failing').waitFor()
    await row.getByText('3 events given up').waitFor()

    await row.getByRole('link').click()
    const warning = page.getByRole('alert').filter({ hasText: 'Your webhook is failing: events are given up' })
    await warning.getByText('3 events of the last 7 days were given up').waitFor()
    await warning.getByText('It has never accepted an event').waitFor()
    await warning.getByRole('link', { name: 'Show why, and redeliver' }).waitFor()
    await page.getByText('It is connected once it has accepted an event').waitFor()
    await page.getByRole('navigation', { name: 'Sections' }).getByText('Messages').click()
    await page.getByRole('link', { name: 'Webhook: Failing' }).waitFor()

    harness.receiver.answerWith({ kind: 'status', status: 200 })
    await page.getByRole('link', { name: 'Webhook: Failing' }).click()
    await page.getByRole('button', { name: 'Redeliver…' }).click()
    await page.getByRole('button', { name: 'Redeliver 3 events' }).click()
    await page.getByText('All done.').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('navigation', { name: 'Sections' }).getByText('Overview').click()
    await warning.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Instances', exact: true }).click()
    await row.getByText('last delivered').waitFor()
    expect(await row.getByText('Failing').count()).toBe(0)
    expect(harness.complaints).toEqual([])
  })

  test('a webhook that works again still shows its missed events', async () => {
    const id = await createRefused('Works again')
    harness.receiver.answerWith({ kind: 'status', status: 200 })
    await harness.service.admin.writeAsContact(id, { from: RECIPIENT, text: 'Hello back' })
    const page = await harness.openSignedIn(`/instances/${id}`)
    const warning = page.getByRole('alert').filter({ hasText: 'Your webhook has missed events' })
    await warning.getByText('3 events of the last 7 days were given up').waitFor()
    await warning.getByText('It last accepted an event').waitFor()
  })

  test('the warning is shown in Portuguese too', async () => {
    const id = await createRefused('Loja')
    const page = await harness.openSignedIn('/', { locale: 'pt-BR' })
    const row = page.getByRole('row').filter({ hasText: id })
    await row.getByText('Falhando').waitFor()
    await row.getByText('3 eventos abandonados').waitFor()
    await row.getByRole('link').click()
    await page.getByRole('alert').getByText('Seu webhook está falhando: eventos estão sendo abandonados').waitFor()
  })
})

describe('while the service is down', () => {
  let harness: PanelHarness
  beforeAll(async () => {
    harness = await PanelHarness.start({ PORT: String(await findFreePort()) })
  })
  afterAll(() => harness.dispose())
  afterEach(() => harness.closePages())

  /** Kills the service. It is started again on the same address at the end of the test at the latest. */
  async function takeAway(): Promise<() => Promise<unknown>> {
    await harness.service.kill('SIGKILL')
    const comeBack = async () => {
      if (harness.service.url === null) await harness.service.start()
    }
    onTestFinished(async () => {
      await comeBack()
      expect(harness.complaints.filter(line => !NOT_REACHED.test(line))).toEqual([])
      harness.complaints.length = 0
    })
    return comeBack
  }

  /** Waits until the panel has read ahead the scripts of these views and their imports, 0.5 s after it was opened. */
  async function untilReadAhead(page: Page, views: readonly string[]): Promise<void> {
    const read = () => page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name))
    await until(`the scripts of ${views}`, async () => {
      const scripts = await read()
      return views.every(view => scripts.some(name => name.includes(`/assets/${view}-`) && name.endsWith('.js')))
    })
    await until('no further scripts', async () => {
      const before = (await read()).length
      await page.waitForTimeout(1_000)
      return (await read()).length === before
    })
  }

  /** The number of elements that say that all is well. */
  async function claimsOn(page: Page): Promise<number> {
    // The states that a filter offers do not count, because their list is outside of `main`.
    const main = page.locator('main')
    const claims = main.getByText('Messages are sent and received').or(main.getByText('Connected', { exact: true }))
    return (await claims.count()) + (await main.locator('[data-tone="good"]').count())
  }

  test('no page says that a number is connected, and every page says since when the service has not answered', async () => {
    const { id } = await harness.service.admin.createConnected('Away')
    const page = await harness.openSignedIn(`/instances/${id}`)
    await page.getByText('Messages are sent and received.').waitFor()
    const list = await harness.openSignedIn('/')
    const row = list.getByRole('row').filter({ hasText: id })
    await row.getByText('Connected', { exact: true }).waitFor()
    const comeBack = await takeAway()
    for (const [shown, badge] of [
      [page, page.getByText('Last known: Connected').first()],
      [list, row.getByText('Last known: Connected')],
    ] as const) {
      await shown.getByRole('alert').getByText('The service does not answer').first().waitFor()
      await shown.getByText('No answer since').waitFor()
      await badge.waitFor()
      expect(await claimsOn(shown)).toBe(0)
    }
    await comeBack()
    await row.getByText('Connected', { exact: true }).waitFor()
    await page.getByText('Messages are sent and received.').waitFor()
    for (const shown of [page, list]) await shown.getByText('No answer since').waitFor({ state: 'detached' })
  })

  test('a service that hangs with open connections is detected too', async () => {
    const { id } = await harness.service.admin.createConnected('Hangs')
    const page = await harness.openSignedIn(`/instances/${id}`, { locale: 'pt-BR' })
    await page.getByText('As mensagens são enviadas e recebidas.').waitFor()
    harness.service.signal('SIGSTOP')
    onTestFinished(() => harness.service.signal('SIGCONT'))
    await page.getByRole('alert').getByText('O serviço não responde').first().waitFor()
    await page.getByText('Último estado: Conectada').first().waitFor()
    harness.service.signal('SIGCONT')
    await page.getByText('As mensagens são enviadas e recebidas.').waitFor()
  })

  test('a message without an answer is not resent automatically; sent again by hand, it goes out once', async () => {
    const { id } = await harness.service.admin.createConnected('Unanswered')
    const page = await harness.openSignedIn(`/instances/${id}`)
    await page.getByLabel('Text', { exact: true }).fill('Only once')
    // The service accepts the call, and the response is lost.
    let taken = 0
    await page.route(/\/messages$/, async route => {
      if (route.request().method() !== 'POST') return route.continue()
      taken += 1
      await route.fetch()
      await route.abort('connectionreset')
    })
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const problem = page.getByRole('alert').filter({ hasText: 'not resent automatically' })
    await problem.waitFor()
    expect(await page.getByText('keeps trying').count()).toBe(0)
    expect(taken).toBe(1)
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('The recipient has opened it.').waitFor()
    expect(await harness.service.admin.listMessages(id)).toHaveLength(1)
    harness.complaints.length = 0
  })

  test('if a reverse proxy gets no answer, a change may have been made, and a read is repeated', async () => {
    await harness.service.admin.createConnected('Behind a proxy')
    const page = await harness.openSignedIn('/')
    const noAnswer = { status: 504, contentType: 'text/html', body: '<h1>504 Gateway Time-out</h1>' }
    await page.route(/\/admin\/v1\/instances$/, route =>
      route.request().method() === 'POST' ? route.fulfill(noAnswer) : route.continue(),
    )
    await page.getByRole('button', { name: 'New instance' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Perhaps')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('alert').filter({ hasText: en.problems.unanswered }).waitFor()
    expect(await page.getByText(en.problems.internal_error).count()).toBe(0)

    let refused = 0
    await page.route(/\/admin\/v1\/alerts\/rules$/, route => {
      refused += 1
      return refused > 2 ? route.continue() : route.fulfill({ ...noAnswer, status: 502 })
    })
    await page.goto(`${harness.url}/alerts`)
    await page.getByRole('combobox', { name: 'A number is down' }).waitFor()
    expect(refused).toBe(3)
    harness.complaints.length = 0
  })

  test('a section whose script was not read ahead appears once the service is back', async () => {
    const { id } = await harness.service.admin.createConnected('Sections')
    const page = await harness.openSignedIn('/sign-in')
    // The script of the section is not prefetched.
    await page.route(/\/assets\/webhook-/, route => route.abort('connectionrefused'))
    await page.goto(`${harness.url}/instances/${id}`)
    await page.getByText('Messages are sent and received.').waitFor()
    const comeBack = await takeAway()
    await page.getByRole('navigation', { name: 'Sections' }).getByText('Webhook').click()
    await page.getByRole('alert').getByText('The service does not answer').first().waitFor()
    await page.getByRole('heading', { level: 1, name: 'Sections' }).waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await comeBack()
    await page.getByLabel('URL').waitFor()
  })

  test('a section that is opened during an outage is not green, and appears once the service is back', async () => {
    const { id, token } = await harness.service.admin.createConnected('Every section')
    const instance = harness.service.instance(id, token)
    await instance.setWebhook(harness.receiver.url)
    await instance.send(RECIPIENT, 'Hello')
    await until('all delivered', async () => {
      return (await harness.service.admin.listEvents(id, '?state=delivered')).length === 3
    })
    const page = await harness.openSignedIn(`/instances/${id}`)
    await page.getByText('Messages are sent and received.').waitFor()
    await untilReadAhead(page, ['messages', 'events', 'webhook', 'phone'])
    const comeBack = await takeAway()
    await page.getByText('No answer since').waitFor()
    const shown = {
      Messages: page.getByRole('table', { name: 'Messages' }),
      Events: page.getByRole('table', { name: 'Events' }),
      Webhook: page.getByRole('heading', { name: harness.receiver.url }),
      Phone: page.getByRole('navigation', { name: 'Conversations' }),
    }
    for (const section of Object.keys(shown)) {
      await page.getByRole('navigation', { name: 'Sections' }).getByText(section).click()
      expect(await claimsOn(page), section).toBe(0)
    }
    await page.getByRole('navigation', { name: 'Sections' }).getByText('Messages').click()
    // The panel has given up its first read.
    await page.getByRole('button', { name: 'Try again' }).waitFor()
    await comeBack()
    await shown.Messages.waitFor()
    for (const [section, content] of Object.entries(shown)) {
      await page.getByRole('navigation', { name: 'Sections' }).getByText(section).click()
      await content.waitFor()
    }
  })

  test('a page that is opened during an outage appears once the service is back', async () => {
    const { id } = await harness.service.admin.createConnected('Opened early')
    const page = await harness.openSignedIn('/')
    await page.route(/\/admin\/v1\//, route => route.abort('connectionrefused'))
    await page.goto(`${harness.url}/instances/${id}`)
    await page.getByText('The service does not answer').first().waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByText('Messages are sent and received.').waitFor()
    harness.complaints.length = 0
  })

  test.each(['/instances', '/instances/', '/settings/', '/instances/inst_nowhere/'])(
    'the address %s, typed or reloaded, shows the panel',
    async path => {
      const page = await harness.openSignedIn('/')
      const response = await page.goto(harness.url + path)
      expect([response?.status(), response?.headers()['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
      await page.locator('h1').waitFor()
      if (path.startsWith('/instances') && !path.includes('inst_')) {
        await page.getByRole('heading', { name: 'Instances' }).waitFor()
      }
      expect(harness.complaints).toEqual([])
    },
  )
})
