import type { MouseEvent, ReactNode } from 'react'

interface RowLinkProps {
  href: string
  onOpen: () => void
  children: ReactNode
}

/** The link of a row, as light as it can be: a list draws thousands of them while it is scrolled. */
export function RowLink({ href, onOpen, children }: RowLinkProps) {
  function open(event: MouseEvent): void {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    onOpen()
  }
  return (
    <a href={href} onClick={open} data-row-link="">
      {children}
    </a>
  )
}
