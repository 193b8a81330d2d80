import { Modal, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent as ReactKeyboardEvent, useEffect, useState } from 'react'
import { call, callData } from '../api/client.ts'
import type { Found, Instance, Page } from '../api/types.ts'
import { useMay } from '../api/use-role.ts'
import { useWords } from '../i18n/i18n.tsx'
import { Problem } from './feedback/problem.tsx'
import { SearchIcon } from './icons.tsx'
import { isTyping } from './log/keys.ts'
import classes from './search-palette.module.css'
import { useDebounced } from './use-debounced.ts'

const SHOWN_INSTANCES = 6

interface Choice {
  key: string
  name: string
  detail: string
  go: () => void
}

interface SearchPaletteProps {
  opened: boolean
  onOpen: () => void
  onClose: () => void
}

/** Finds instances, messages, events and numbers. Opens with Ctrl+K, Cmd+K or `/`. */
export function SearchPalette({ opened, onOpen, onClose }: SearchPaletteProps) {
  const words = useWords()
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      const isShortcut = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k'
      if (!isShortcut && (event.key !== '/' || isTyping(event))) return
      event.preventDefault()
      onOpen()
    }
    document.addEventListener('keydown', open)
    return () => document.removeEventListener('keydown', open)
  }, [onOpen])
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={words.tools.search}
      closeButtonProps={{ 'aria-label': words.common.close }}
      yOffset="10vh"
      transitionProps={{ duration: 0 }}
    >
      <Body onClose={onClose} />
    </Modal>
  )
}

function Body({ onClose }: { onClose: () => void }) {
  const words = useWords()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const { choices, isSearching, error, retry } = useChoices(text.trim(), onClose)
  const chosen = Math.min(at, choices.length - 1)

  function onKey(event: ReactKeyboardEvent): void {
    if (event.key === 'Enter') {
      event.preventDefault()
      choices[chosen]?.go()
    }
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 || choices.length === 0) return
    event.preventDefault()
    setAt((chosen + step + choices.length) % choices.length)
  }

  return (
    <>
      <TextInput
        aria-label={words.tools.searchHint}
        placeholder={words.tools.searchHint}
        leftSection={<SearchIcon />}
        value={text}
        maxLength={100}
        autoComplete="off"
        role="combobox"
        aria-expanded
        aria-controls="search-results"
        aria-activedescendant={choices[chosen] && `search-${chosen}`}
        onChange={event => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={onKey}
        data-autofocus
      />
      <div id="search-results" role="listbox" aria-label={words.tools.search} className={classes.results}>
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and handles the keys
          <div
            key={choice.key}
            id={`search-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            className={classes.result}
            onClick={choice.go}
            onMouseMove={() => setAt(index)}
          >
            <span>{choice.name}</span>
            <span className={classes.detail}>{choice.detail}</span>
          </div>
        ))}
      </div>
      <Problem error={error} onRetry={retry} />
      <div role="status" className={classes.help}>
        {choices.length > 0 && words.tools.searchHelp}
        {choices.length === 0 && !isSearching && !error && (
          <>
            <strong>{words.tools.nothingFound}</strong> {words.tools.nothingFoundText}
          </>
        )}
      </div>
    </>
  )
}

interface Choices {
  choices: Choice[]
  isSearching: boolean
  /** Why something could not be searched. Null if everything was. */
  error: Error | null
  retry: () => void
}

function useChoices(text: string, onClose: () => void): Choices {
  const words = useWords()
  const debounced = useDebounced(text)
  const isOn = debounced !== ''
  const instances = useQuery({
    queryKey: ['palette', 'instances', debounced],
    queryFn: ({ signal }) =>
      call<Page<Instance>>('/instances', { query: { search: debounced, limit: SHOWN_INSTANCES }, signal }),
    enabled: isOn,
    staleTime: 0,
  })
  const found = useQuery({
    queryKey: ['palette', 'found', debounced],
    queryFn: ({ signal }) => callData<Found[]>('/search', { query: { text: debounced }, signal }),
    enabled: isOn,
    staleTime: 0,
  })
  const pages = usePageChoices(onClose)
  const goTo = useGoTo(onClose)
  const retry = () => {
    if (instances.error) void instances.refetch()
    if (found.error) void found.refetch()
  }
  if (text === '') return { choices: pages, isSearching: false, error: null, retry }
  const named = pages.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
  // Enter must not open what an earlier text has found.
  if (text !== debounced) return { choices: named, isSearching: true, error: null, retry }
  const hits = found.data?.map(hit => ({
    key: `${hit.kind} ${hit.id} ${hit.instance.id}`,
    name: `${words.tools.found[hit.kind]} ${hit.id}`,
    detail: hit.instance.name,
    go: () => goTo(hit),
  }))
  const rows = instances.data?.data.map(instance => ({
    key: instance.id,
    name: instance.name,
    detail: instance.phone ? `+${instance.phone}` : words.instances.noNumber,
    go: () => goTo({ kind: 'instance', id: instance.id, instance }),
  }))
  return {
    choices: [...(hits ?? []), ...(rows ?? []), ...named],
    isSearching: instances.isPending || found.isPending,
    error: instances.error ?? found.error,
    retry,
  }
}

function useGoTo(onClose: () => void) {
  const navigate = useNavigate()
  return ({ kind, id, instance }: { kind: Found['kind'] | 'instance'; id: string; instance: Instance }) => {
    const params = { id: instance.id }
    onClose()
    if (kind === 'instance') void navigate({ to: '/instances/$id', params })
    if (kind === 'message') void navigate({ to: '/instances/$id/messages', params, search: { open: id } })
    if (kind === 'event') void navigate({ to: '/instances/$id/events', params, search: { open: id } })
    if (kind === 'number') void navigate({ to: '/instances/$id/messages', params, search: { search: id } })
  }
}

function usePageChoices(onClose: () => void): Choice[] {
  const words = useWords()
  const navigate = useNavigate()
  const isOwner = useMay('owner')
  const to = (path: '/' | '/alerts' | '/people' | '/audit' | '/settings' | '/guides', name: string): Choice => ({
    key: path,
    name,
    detail: words.tools.pages,
    go: () => {
      onClose()
      void navigate({ to: path })
    },
  })
  return [
    to('/', words.instances.title),
    ...(isOwner
      ? [to('/alerts', words.alerts.title), to('/people', words.people.title), to('/audit', words.audit.title)]
      : []),
    to('/settings', words.shell.settings),
    to('/guides', words.guides.title),
    {
      key: '/docs/',
      name: words.shell.apiReference,
      detail: words.tools.pages,
      go: () => window.location.assign('/docs/'),
    },
  ]
}
