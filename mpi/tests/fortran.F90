! Collectives from Fortran, by `use mpi` or (-DF08) by `use mpi_f08`: MPI_IN_PLACE, MPI_BOTTOM, operators of the program, requests.
! Results are computed here. -DNO_PERSISTENT for an MPI without persistent collectives.
#ifdef F08
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
module operators
contains
    ! Composition of affine maps x -> a x + b, as pairs of numbers side by side: does not commute.
#ifdef F08
    subroutine compose(invec, inoutvec, length, datatype)
        use, intrinsic :: iso_c_binding
        use mpi_f08
        type(c_ptr), value :: invec, inoutvec
        integer :: length
        type(MPI_Datatype) :: datatype
        integer(c_long_long), pointer :: first(:), then(:)
        integer :: i
        integer(c_long_long) :: a, b, c, d
        call c_f_pointer(invec, first, [length])
        call c_f_pointer(inoutvec, then, [length])
#else
    subroutine compose(first, then, length, datatype)
        use, intrinsic :: iso_c_binding
        use mpi
        integer :: length, datatype
        integer(c_long_long) :: first(length), then(length)
        integer :: i
        integer(c_long_long) :: a, b, c, d
#endif
        ! The type is the one that was named, by Fortran's handle.
        if (datatype /= MPI_INTEGER8) error stop "an operator got another type"
        do i = 1, length
            a = first(i) / 1000; b = mod(first(i), 1000_c_long_long)
            c = then(i) / 1000; d = mod(then(i), 1000_c_long_long)
            then(i) = 1000 * mod(a * c, 997_c_long_long) + mod(b * c + d, 997_c_long_long)
        end do
    end subroutine
end module

program fortran
    use, intrinsic :: iso_c_binding
#ifdef F08
    use mpi_f08
#else
    use mpi
#endif
    use operators
    implicit none
    integer :: rank, ranks, ierr, turn, i, r, root, level
    integer :: numbers(64), all(256), counts(64), places(64), word
    integer, save :: far(8), near(4)
    double precision :: real8(5), sum8(5)
    double precision :: pair(2), best(2)
    integer(c_long_long) :: maps(3), composed(3), want(3), one(3)
    integer(kind=MPI_ADDRESS_KIND) :: addresses(2)
    character(len=12) :: text
    logical :: truth, every, flag
    HANDLE(MPI_Op) :: op
    HANDLE(MPI_Datatype) :: parts, strided
    HANDLE(MPI_Comm) :: half
    HANDLE(MPI_Request) :: requests(4)
#ifdef F08
    type(MPI_Status) :: statuses(4)
#else
    integer :: statuses(MPI_STATUS_SIZE, 4)
#endif

    call MPI_Init_thread(MPI_THREAD_FUNNELED, level, ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    do i = 1, 20
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
    end do
    call MPI_Op_create(compose, .false., op, ierr)
    do turn = 1, 24
        root = mod(turn, ranks)
        text = "nothing"
        if (rank == root) write (text, '(a,i0)') "turn ", turn
        call MPI_Bcast(text, 12, MPI_CHARACTER, root, MPI_COMM_WORLD, ierr)
        call expect(text(1:5) == "turn ", "bcast of characters")

        do i = 1, 5
            real8(i) = rank + i * turn
        end do
        sum8 = real8
        call MPI_Allreduce(MPI_IN_PLACE, sum8, 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
        do i = 1, 5
            call expect(sum8(i) == ranks * i * turn + ranks * (ranks - 1) / 2, "allreduce in place")
        end do

        truth = mod(rank + turn, 3) /= 0
        call MPI_Allreduce(truth, every, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
        flag = .true.
        do r = 0, ranks - 1
            flag = flag .and. mod(r + turn, 3) /= 0
        end do
        call expect(every .eqv. flag, "logical and")

        pair = [dble(mod(rank * 5 + turn, 7)), dble(rank)]
        call MPI_Allreduce(pair, best, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
        call expect(best(1) == mod(nint(best(2)) * 5 + turn, 7), "maxloc")

        do i = 1, 3
            maps(i) = 1000 * (rank + i) + 7 * rank + turn
            want(i) = 1000 * i + turn
        end do
        do r = 1, ranks - 1
            do i = 1, 3
                one(i) = 1000 * (r + i) + 7 * r + turn
            end do
            call apply(want, one)
            want = one
        end do
        call MPI_Allreduce(maps, composed, 3, MPI_INTEGER8, op, MPI_COMM_WORLD, ierr)
        call expect(all_equal(composed, want), "an operator of the program, allreduce")
        composed = 0
        call MPI_Reduce(maps, composed, 3, MPI_INTEGER8, op, root, MPI_COMM_WORLD, ierr)
        if (rank == root) call expect(all_equal(composed, want), "an operator of the program, reduce")

        do r = 1, ranks
            counts(r) = mod(r + turn, 3)
            places(r) = 3 * (r - 1)
        end do
        numbers = 100 * rank + turn
        all = -1
        call MPI_Allgatherv(numbers, counts(rank + 1), MPI_INTEGER, all, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierr)
        do r = 1, ranks
            do i = 1, counts(r)
                call expect(all(places(r) + i) == 100 * (r - 1) + turn, "allgatherv")
            end do
        end do
        all(1:ranks) = -1
        all(rank + 1) = rank
        call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
        do r = 1, ranks
            call expect(all(r) == r - 1, "allgather in place")
        end do

        ! Two variables by their addresses.
        far = -1; near = -2
        if (rank == root) then
            far = turn; near = 2 * turn
        end if
        call MPI_Get_address(far, addresses(1), ierr)
        call MPI_Get_address(near, addresses(2), ierr)
        call MPI_Type_create_hindexed(2, [8, 4], addresses, MPI_INTEGER, parts, ierr)
        call MPI_Type_commit(parts, ierr)
        call MPI_Bcast(MPI_BOTTOM, 1, parts, root, MPI_COMM_WORLD, ierr)
        call expect(far(8) == turn .and. near(4) == 2 * turn, "bcast from MPI_BOTTOM")
        far = -1
        if (rank == root) far = turn + 1
        call MPI_Ibcast(MPI_BOTTOM, 1, parts, root, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Type_free(parts, ierr)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
        call expect(far(1) == turn + 1 .and. near(1) == 2 * turn, "ibcast from MPI_BOTTOM")

        call MPI_Type_vector(3, 1, 2, MPI_INTEGER, strided, ierr)
        call MPI_Type_commit(strided, ierr)
        numbers = rank * 10
        call MPI_Irecv(word, 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), 4, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Iallgather(numbers, 1, strided, all, 3, MPI_INTEGER, MPI_COMM_WORLD, requests(2), ierr)
        call MPI_Iallreduce(MPI_IN_PLACE, real8, 5, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, requests(3), ierr)
        call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 4, MPI_COMM_WORLD, requests(4), ierr)
        if (mod(turn, 3) == 0) then
            call MPI_Waitall(4, requests, statuses, ierr)
        else if (mod(turn, 3) == 1) then
            do r = 1, 4
                call MPI_Waitany(4, requests, i, MPI_STATUS_IGNORE, ierr)
                call expect(i >= 1 .and. i <= 4, "waitany's index")
            end do
        else
            flag = .false.
            do while (.not. flag)
                call MPI_Testall(4, requests, flag, statuses, ierr)
            end do
        end if
        call MPI_Type_free(strided, ierr)
        call expect(word == mod(rank + ranks - 1, ranks), "a message among collectives")
        call expect(real8(5) == ranks - 1 + 5 * turn, "iallreduce in place")
        do r = 0, ranks - 1
            call expect(all(3 * r + 3) == r * 10, "iallgather of a type with gaps")
        end do
    end do

    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
    do turn = 1, 12
        word = rank
        call MPI_Bcast(word, 1, MPI_INTEGER, 0, half, ierr)
        call expect(word == mod(rank, 2), "bcast in a half")
    end do
#ifndef NO_PERSISTENT
    call MPI_Allreduce_init(numbers, all, 4, MPI_INTEGER, MPI_SUM, half, MPI_INFO_NULL, requests(1), ierr)
    call MPI_Barrier_init(half, MPI_INFO_NULL, requests(2), ierr)
    do turn = 1, 6
        numbers = turn
        call MPI_Startall(2, requests, ierr)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
        call expect(all(4) == turn * ((ranks + 1 - mod(rank, 2)) / 2), "a persistent allreduce")
    end do
    call MPI_Request_free(requests(1), ierr)
    call MPI_Request_free(requests(2), ierr)
#endif
    call MPI_Comm_free(half, ierr)
    call MPI_Op_free(op, ierr)
    if (rank == 0) print '(a,i0,a)', "fortran: kept by ", ranks, " ranks"
    call MPI_Finalize(ierr)

contains
    subroutine expect(holds, what)
        logical, intent(in) :: holds
        character(len=*), intent(in) :: what
        if (.not. holds) then
            print *, "rank ", rank, " of ", ranks, ", turn ", turn, ": wrong: ", what
            call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
        end if
    end subroutine

    logical function all_equal(a, b)
        integer(c_long_long), intent(in) :: a(3), b(3)
        all_equal = a(1) == b(1) .and. a(2) == b(2) .and. a(3) == b(3)
    end function

    ! What compose does, without a type.
    subroutine apply(first, then)
        integer(c_long_long), intent(in) :: first(3)
        integer(c_long_long), intent(inout) :: then(3)
        integer :: k
        integer(c_long_long) :: a, b, c, d
        do k = 1, 3
            a = first(k) / 1000; b = mod(first(k), 1000_c_long_long)
            c = then(k) / 1000; d = mod(then(k), 1000_c_long_long)
            then(k) = 1000 * mod(a * c, 997_c_long_long) + mod(b * c + d, 997_c_long_long)
        end do
    end subroutine
end program
